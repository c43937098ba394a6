/** The types of `bertscore.mjs`. */

/** A bundle's `bertscore.json`: the fields that are read. */
export interface Manifest {
  readonly format_version: number;
  readonly files: Readonly<Record<string, string>>;
  readonly tokenizer_mode: "fast" | "slow";
  readonly all_layers: boolean;
  readonly precision: string;
  readonly max_length: number | null;
  readonly pad_id: number;
  readonly empty_ids: readonly number[];
  readonly baselines: Readonly<Record<string, readonly Score[]>>;
  readonly unrelated?: Readonly<Record<string, { readonly precision: string }>>;
}

export interface Score {
  precision: number;
  recall: number;
  f1: number;
}

/** A tokenizer of `@huggingface/tokenizers`. */
export interface Tokenizer {
  encode(text: string, options?: { add_special_tokens?: boolean }): { ids: number[] };
}

/** A tensor of `onnxruntime-node` or `onnxruntime-web`. */
export interface TensorLike {
  readonly data: unknown;
  readonly dims: readonly number[];
}

export type TensorClass<T extends TensorLike> = new (type: "int64", data: BigInt64Array, dims: readonly number[]) => T;

/** A session of `scoring.onnx`, which takes tensors of its own runtime. */
export interface Session<T extends TensorLike> {
  run(feeds: Record<string, T>): Promise<Readonly<Record<string, TensorLike>>>;
}

export function pairsOf(candidates: readonly string[], references: readonly string[]): [string, string][];
export function strip(text: string): string;
export function checkManifest(manifest: unknown): void;
export function rescaling(manifest: Manifest, language?: string): (score: Score) => Score;
export function padded<T extends TensorLike>(
  Tensor: TensorClass<T>,
  sequences: readonly (readonly number[])[],
  padId: number,
): [T, T];

export class Scorer<T extends TensorLike> {
  constructor(manifest: Manifest, tokenizer: Tokenizer, session: Session<T>, Tensor: TensorClass<T>);
  encode(text: string): { ids: readonly number[]; isCut: boolean };
  score(pairs: readonly (readonly [string, string])[]): Promise<{ scores: Score[]; numCut: number }>;
}
