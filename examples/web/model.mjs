/** A bundle in the browser: fetched from beside the page, with the packages that run it. */

import { checkManifest, padded, Scorer } from "./bertscore.mjs";
import { nearestOf, similarityOf, transposed } from "./matches.mjs";

/** Scores pairs, and finds their matching tokens. */
export class Model {
  #tokenizer;
  #encoder;
  #Tensor;

  /** Fetches the packages and the bundle; throws an error that names a missing or unsuitable part. */
  static async load() {
    if (typeof WebAssembly === "undefined") throw new Error("The model needs WebAssembly, which this browser lacks.");
    const manifest = await fetchedJson("bundle/bertscore.json");
    checkManifest(manifest);
    const [ort, { Tokenizer }] = await Promise.all([
      import("./lib/ort.wasm.bundle.min.mjs"),
      import("./lib/tokenizers.min.mjs"),
    ]);
    ort.env.wasm.proxy = true; // in a worker, so that the page stays responsive
    ort.env.wasm.wasmBinary = await fetchedBytes("lib/ort-wasm-simd-threaded.wasm");
    const [tokenizer, data, scoring, encoder] = await Promise.all([
      fetchedJson("bundle/tokenizer.json"),
      ...["model.onnx.data", "scoring.onnx", "model.onnx"].map((name) => fetchedBytes(`bundle/${name}`)),
    ]);
    const externalData = [{ path: "model.onnx.data", data }];
    const open = (graph) => ort.InferenceSession.create(graph, { externalData, logSeverityLevel: 3 });
    return new Model(manifest, new Tokenizer(tokenizer, {}), await open(scoring), await open(encoder), ort.Tensor);
  }

  constructor(manifest, tokenizer, scoring, encoder, Tensor) {
    this.manifest = manifest;
    this.scorer = new Scorer(manifest, tokenizer, scoring, Tensor);
    this.#tokenizer = tokenizer;
    this.#encoder = encoder;
    this.#Tensor = Tensor;
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

async function fetched(path) {
  const response = await fetch(path).catch(() => null);
  if (!response) throw new Error(`${path} cannot be reached.`);
  if (!response.ok) throw new Error(`${path} is missing: the server answered ${response.status}.`);
  return response;
}

async function fetchedBytes(path) {
  return new Uint8Array(await (await fetched(path)).arrayBuffer());
}

async function fetchedJson(path) {
  const response = await fetched(path);
  return response.json().catch(() => {
    throw new Error(`${path} is not JSON.`);
  });
}
