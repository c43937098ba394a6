#!/usr/bin/env node
/**
 * Prints the precision, recall and F1 of each line of a file against the same line of another.
 *
 *     node score.mjs [--rescale LANGUAGE] BUNDLE CANDIDATES REFERENCES
 *
 * BUNDLE was written by `bertscore-onnx export --tokenizer-mode fast --scoring-graph`.
 */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { Tokenizer } from "@huggingface/tokenizers";
import { InferenceSession, Tensor } from "onnxruntime-node";

import { checkManifest, pairsOf, rescaling, Scorer } from "./bertscore.mjs";

const read = (path) => new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(path));

function linesOf(path) {
  const lines = read(path).split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop(); // the empty string after the last line end
  return lines;
}

async function main() {
  const { values, positionals } = parseArgs({ options: { rescale: { type: "string" } }, allowPositionals: true });
  if (positionals.length !== 3) throw new Error("Expected three paths: BUNDLE CANDIDATES REFERENCES.");
  const [bundle, candidates, references] = positionals;
  if (!existsSync(join(bundle, "bertscore.json"))) {
    throw new Error(`${bundle} is no bundle: it has no bertscore.json. Export a model with --scoring-graph.`);
  }
  const manifest = JSON.parse(read(join(bundle, "bertscore.json")));
  checkManifest(manifest);
  const rescale = rescaling(manifest, values.rescale);
  const pairs = pairsOf(linesOf(candidates), linesOf(references));
  const tokenizer = new Tokenizer(JSON.parse(read(join(bundle, "tokenizer.json"))), {});
  const session = await InferenceSession.create(join(bundle, "scoring.onnx"), { logSeverityLevel: 3 });
  const { scores, numCut } = await new Scorer(manifest, tokenizer, session, Tensor).score(pairs);
  if (numCut) console.error(`score.mjs: ${numCut} texts are longer than the model takes; their ends are not scored.`);
  console.log("precision\trecall\tf1");
  for (const { precision, recall, f1 } of scores.map(rescale)) {
    console.log([precision, recall, f1].map((score) => score.toFixed(6)).join("\t"));
  }
}

main().catch((error) => {
  console.error(`score.mjs: ${error.message}`);
  process.exitCode = 1;
});
