#!/usr/bin/env node
/**
 * Copies the page and a bundle into a folder of files for any web server.
 *
 *     node site.mjs BUNDLE [FOLDER]
 *
 * FOLDER is `site` beside this file by default. To view the page: `python3 -m http.server --directory FOLDER`.
 */

import { cpSync, mkdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

import { checkManifest } from "./bertscore.mjs";

const HERE = import.meta.dirname;
const PAGE = ["index.html", "style.css", "page.mjs", "model.mjs", "matches.mjs", "bertscore.mjs"];
const PACKAGES = [
  "onnxruntime-web/dist/ort.wasm.bundle.min.mjs",
  "onnxruntime-web/dist/ort-wasm-simd-threaded.wasm",
  "@huggingface/tokenizers/dist/tokenizers.min.mjs",
];
const BUNDLE = ["bertscore.json", "tokenizer.json", "model.onnx", "model.onnx.data", "scoring.onnx"];

function copy(paths, folder) {
  mkdirSync(folder, { recursive: true });
  for (const path of paths) cpSync(path, join(folder, basename(path)));
}

try {
  const [bundle, folder = join(HERE, "site")] = process.argv.slice(2);
  if (!bundle) throw new Error("Expected the path of a bundle.");
  checkManifest(JSON.parse(readFileSync(join(bundle, "bertscore.json"), "utf8")));
  copy(PAGE.map((name) => join(HERE, name)), folder);
  copy(PACKAGES.map((name) => join(HERE, "node_modules", name)), join(folder, "lib"));
  copy(BUNDLE.map((name) => join(bundle, name)), join(folder, "bundle"));
} catch (error) {
  console.error(`site.mjs: ${error.message}`);
  process.exitCode = 1;
}
