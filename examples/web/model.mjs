/** A bundle in the browser: fetched from beside the page, with the packages that run it. */

import { checkManifest, padded, Scorer } from "./bertscore.mjs";
import { fetchedJson } from "./files.mjs";
import { nearestOf, similarityOf, transposed } from "./matches.mjs";

const BUNDLE = ["tokenizer.json", "model.onnx.data", "scoring.onnx", "model.onnx"].map((name) => `bundle/${name}`);
const RUNTIMES = {
  webgpu: ["./lib/ort.webgpu.bundle.min.mjs", "lib/ort-wasm-simd-threaded.asyncify.wasm"],
  wasm: ["./lib/ort.wasm.bundle.min.mjs", "lib/ort-wasm-simd-threaded.wasm"],
};

/** The largest difference from the scores in the manifest with which a graphics processor is trusted. */
const TOLERANCE = 2e-3;

/** Returns the manifest of the bundle; throws an error if it cannot be used here. */
export async function suitableManifest() {
  if (typeof WebAssembly === "undefined") throw new Error("The model needs WebAssembly, which this browser lacks.");
  const manifest = await fetchedJson("bundle/bertscore.json");
  checkManifest(manifest);
  return manifest;
}

/** Returns the engines to try: WebGPU where the browser has it, for half precision too, and then WebAssembly. */
export async function enginesFor(manifest) {
  const adapter = await navigator.gpu?.requestAdapter().catch(() => null);
  const isAble = adapter && (manifest.precision !== "fp16" || adapter.features.has("shader-f16"));
  return isAble ? ["webgpu", "wasm"] : ["wasm"];
}

/** Returns the large files that an engine loads. */
export const filesOf = (engine) => [RUNTIMES[engine][1], ...BUNDLE];

/** Scores pairs, and finds their matching tokens. */
export class Model {
  #tokenizer;
  #encoder;
  #Tensor;

  /** Loads the first engine that works; `report` is called with each number of new bytes. */
  static async load(manifest, engines, files, report) {
    for (const engine of engines) {
      const model = Model.#open(manifest, engine, files, report);
      if (engine === engines.at(-1)) return model;
      const isRight = await model.then((one) => one.#isRight()).catch((error) => console.info(error));
      if (isRight) return model;
      console.info(`${engine} is not used.`);
    }
  }

  static async #open(manifest, engine, files, report) {
    const [script, wasm] = RUNTIMES[engine];
    const [ort, { Tokenizer }] = await Promise.all([import(script), import("./lib/tokenizers.min.mjs")]);
    ort.env.wasm.numThreads = 1; // more need headers that few servers of files send
    ort.env.wasm.proxy = engine === "wasm"; // in a worker, so that the page stays responsive
    ort.env.wasm.wasmBinary = await files.bytes(wasm, report);
    const [vocabulary, data, ...graphs] = await Promise.all(BUNDLE.map((path) => files.bytes(path, report)));
    const tokenizer = new Tokenizer(JSON.parse(new TextDecoder().decode(vocabulary)), {});
    const options = {
      executionProviders: [engine],
      externalData: [{ path: "model.onnx.data", data }],
      logSeverityLevel: 3,
    };
    const sessions = [];
    for (const graph of graphs) sessions.push(await ort.InferenceSession.create(graph, options));
    return new Model(manifest, engine, tokenizer, ...sessions, ort.Tensor);
  }

  constructor(manifest, engine, tokenizer, scoring, encoder, Tensor) {
    this.engine = engine;
    this.manifest = manifest;
    this.scorer = new Scorer(manifest, tokenizer, scoring, Tensor);
    this.#tokenizer = tokenizer;
    this.#encoder = encoder;
    this.#Tensor = Tensor;
  }

  /** Returns whether the pairs of the manifest get its scores. */
  async #isRight() {
    const golden = this.manifest.golden;
    const { scores } = await this.scorer.score(golden.map((pair) => [pair.candidate, pair.reference]));
    return golden.every((pair, place) => Math.abs(pair.f1[0] - scores[place].f1) <= TOLERANCE);
  }

  /** Returns the tokens of both texts of a pair, each with the position of its `nearest` token in the other text. */
  async match(pair) {
    const [candidate, reference] = pair.map((text) => this.scorer.encode(text).ids);
    const similarity = similarityOf(await this.#embed(candidate), await this.#embed(reference));
    return [this.#tokens(candidate, similarity), this.#tokens(reference, transposed(similarity))];
  }

  /** Returns the unit vectors of the tokens of a text, (1, tokens, hidden). */
  async #embed(ids) {
    const [input_ids, attention_mask] = padded(this.#Tensor, [ids], this.manifest.pad_id);
    const feeds = { input_ids, attention_mask };
    const wanted = this.manifest.inputs.map((name) => [name, feeds[name]]);
    return (await this.#encoder.run(Object.fromEntries(wanted)))[this.manifest.output];
  }

  #tokens(ids, similarity) {
    const nearest = nearestOf(similarity);
    return ids.map((id, place) => ({
      text: this.#textOf(id),
      weighs: !this.manifest.zero_weight_ids.includes(id),
      nearest: nearest[place],
    }));
  }

  /** Returns a token as text, or as the vocabulary writes it if it is a part of a character. */
  #textOf(id) {
    const text = this.#tokenizer.decode([id], { clean_up_tokenization_spaces: false }).trim();
    return text && !text.includes("\ufffd") ? text : this.#tokenizer.id_to_token(id);
  }
}
