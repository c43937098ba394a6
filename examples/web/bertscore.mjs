/**
 * BERTScore of pairs of texts with the scoring graph of a bundle: texts to token ids, ids to P, R and F, and rescaling.
 *
 * It imports nothing, so that Node and browsers share it: the caller passes the tokenizer, the session and the tensor
 * class of its ONNX Runtime.
 */

/** That of `bertscore_onnx/bundle/manifest.py`. */
const FORMAT_VERSION = 3;

/** The most tokens of a text if the model has no limit of its own. */
const DEFAULT_MAX_LENGTH = 8192;

/** The most padded tokens of both sides in one batch; a longer pair is a batch of its own. */
const MAX_TOKENS = 4096;

/** White space in Python; `trim` keeps U+001C to U+001F and U+0085, and removes U+FEFF. */
const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

/** Pairs each candidate with its reference; throws if their numbers differ. */
export function pairsOf(candidates, references) {
  if (candidates.length !== references.length) {
    throw new Error(
      `There are ${candidates.length} candidates and ${references.length} references. Write one text per line, and ` +
        "the same number of each.",
    );
  }
  return candidates.map((candidate, place) => [candidate, references[place]]);
}

/** Returns the text without the white space at its ends, as Python's `strip` does. */
export function strip(text) {
  let start = 0;
  let end = text.length;
  while (start < end && SPACE.test(text[start])) start++;
  while (start < end && SPACE.test(text[end - 1])) end--;
  return text.slice(start, end);
}

/** Throws an error with the right export options if a bundle, by its `bertscore.json`, cannot be used here. */
export function checkManifest(manifest) {
  const refuse = (what) => {
    throw new Error(`The bundle ${what}`);
  };
  if (!manifest?.format_version) refuse("has no bertscore.json.");
  if (manifest.format_version !== FORMAT_VERSION) {
    refuse(
      `was made by another version of bertscore-onnx, in format version ${manifest.format_version}; ` +
        `this page reads ${FORMAT_VERSION}. Export the model again.`,
    );
  }
  if (!manifest.files?.["scoring.onnx"]) refuse("has no scoring graph. Export the model with --scoring-graph.");
  if (manifest.tokenizer_mode !== "fast") {
    refuse("is in the slow tokenizer mode, which only Python follows. Export the model with --tokenizer-mode fast.");
  }
  if (manifest.all_layers) refuse("gives the scores of all layers. Export the model without --all-layers.");
}

/**
 * Returns a function that rescales scores with the bundle's baseline of a language, which maps the baseline to 0 and
 * leaves 1 at 1; without a language, one that leaves them raw. Throws if there is no such baseline.
 */
export function rescaling(manifest, language) {
  if (!language) return (score) => score;
  const baselines = new Map(Object.entries(manifest.baselines));
  const [baseline] = baselines.get(language) ?? []; // of one layer
  if (!baseline) {
    const known = [...baselines.keys()].join(", ");
    throw new Error(`The bundle has no baseline for ${language}, ${known ? `only for: ${known}` : "nor any other"}.`);
  }
  const computed = manifest.unrelated?.[language]?.precision ?? "fp32";
  if (computed !== manifest.precision) {
    throw new Error(`The baseline was computed in ${computed}, and this bundle computes in ${manifest.precision}.`);
  }
  const rescaled = ([name, value]) => [name, (value - baseline[name]) / (1 - baseline[name])];
  return (score) => Object.fromEntries(Object.entries(score).map(rescaled));
}

/** Returns int64 tensors of sequences of ids, padded to the longest, and of their mask: 1 on tokens, 0 on padding. */
export function padded(Tensor, sequences, padId) {
  const width = Math.max(...sequences.map((ids) => ids.length));
  const ids = new BigInt64Array(sequences.length * width).fill(BigInt(padId));
  const mask = new BigInt64Array(ids.length);
  sequences.forEach((sequence, row) => {
    ids.set(sequence.map(BigInt), row * width);
    mask.fill(1n, row * width, row * width + sequence.length);
  });
  const shape = [sequences.length, width];
  return [new Tensor("int64", ids, shape), new Tensor("int64", mask, shape)];
}

/** Scores pairs of texts with one bundle. */
export class Scorer {
  #manifest;
  #tokenizer;
  #suffix;
  #session;
  #Tensor;

  /**
   * Takes a bundle's manifest, a tokenizer of `@huggingface/tokenizers` made from its `tokenizer.json`, a session of its
   * `scoring.onnx`, and the `Tensor` of that session's runtime.
   */
  constructor(manifest, tokenizer, session, Tensor) {
    const [last] = tokenizer.encode("a", { add_special_tokens: false }).ids.slice(-1);
    const { ids } = tokenizer.encode("a");
    this.#suffix = ids.slice(ids.lastIndexOf(last) + 1); // the special tokens after a text
    this.#manifest = manifest;
    this.#tokenizer = tokenizer;
    this.#session = session;
    this.#Tensor = Tensor;
  }

  /**
   * Returns the `ids` of a text, special tokens included, truncated at the right to the maximum length, and
   * `isCut`: whether it was truncated.
   */
  encode(text) {
    const stripped = strip(text).toWellFormed();
    const found = stripped ? this.#tokenizer.encode(stripped).ids : [];
    const maxLength = this.#manifest.max_length ?? DEFAULT_MAX_LENGTH;
    const isCut = found.length > maxLength;
    if (!isCut) return { ids: found.length ? found : this.#manifest.empty_ids, isCut };
    return { ids: [...found.slice(0, maxLength - this.#suffix.length), ...this.#suffix], isCut };
  }

  /**
   * Returns `scores`, raw `{ precision, recall, f1 }` for each [candidate, reference], which are 0 if one of them is
   * empty; and `numCut`, the number of truncated texts.
   */
  async score(pairs) {
    const texts = pairs.map((pair) => pair.map((text) => this.encode(text)));
    const numCut = texts.flat().filter((text) => text.isCut).length;
    const encoded = texts.map((pair) => pair.map((text) => text.ids));
    const scores = [];
    for (const batch of batches(encoded)) {
      const [candidates, references] = [0, 1].map((side) => batch.map((place) => encoded[place][side]));
      const [candidate_ids, candidate_mask] = padded(this.#Tensor, candidates, this.#manifest.pad_id);
      const [reference_ids, reference_mask] = padded(this.#Tensor, references, this.#manifest.pad_id);
      const feeds = { candidate_ids, candidate_mask, reference_ids, reference_mask };
      const { precision, recall, f1 } = await this.#session.run(feeds);
      batch.forEach((place, row) => {
        scores[place] = { precision: precision.data[row], recall: recall.data[row], f1: f1.data[row] };
      });
    }
    return { scores, numCut };
  }
}

/** Yields the positions of pairs in batches of bounded size, the shortest pairs first. */
function* batches(encoded) {
  const width = (place) => Math.max(...encoded[place].map((ids) => ids.length));
  let batch = [];
  for (const place of [...encoded.keys()].sort((one, other) => width(one) - width(other))) {
    if (batch.length && 2 * width(place) * (batch.length + 1) > MAX_TOKENS) {
      yield batch;
      batch = [];
    }
    batch.push(place);
  }
  if (batch.length) yield batch;
}
