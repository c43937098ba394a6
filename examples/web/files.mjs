/** The files beside the page: fetched with progress, and kept by the browser, so that the page works offline later. */

const HERE = new URL(".", import.meta.url);
const MODEL = "bertscore-onnx-model";
const PAGE = "bertscore-onnx-page";

const addressOf = (path) => new URL(path, HERE).href;

/** Returns an empty value where the browser keeps nothing: on pages without https, or in private windows. */
const cache = (name) => globalThis.caches?.open(name).catch(() => null);

async function fetched(path) {
  const response = await fetch(addressOf(path)).catch(() => null);
  if (!response) throw new Error(`${path} cannot be reached.`);
  if (!response.ok) throw new Error(`${path} is missing: the server answered ${response.status}.`);
  return response;
}

/** Returns the content of a JSON file, which is fetched anew. */
export async function fetchedJson(path) {
  const response = await fetched(path);
  return response.json().catch(() => {
    throw new Error(`${path} is not JSON.`);
  });
}

/** The large files, by the list in `files.json`. */
export class Files {
  #entries;
  #used = new Set();

  /** Fetches the list; throws an error with the remedy if there is none. */
  static async load() {
    const entries = await fetchedJson("files.json").catch(() => {
      throw new Error("There is no model beside this page. In a checkout, `make web site` builds the site with one.");
    });
    return new Files(entries);
  }

  constructor(entries) {
    this.#entries = entries;
  }

  #key(path) {
    return `${addressOf(path)}?${this.#entries[path].sha256}`;
  }

  /** Returns the number of bytes of these files that would be loaded. */
  async missing(paths) {
    const store = await cache(MODEL);
    const sizes = paths.map(async (path) => ((await store?.match(this.#key(path))) ? 0 : this.#entries[path].size));
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  }

  /** Returns the bytes of a file, the browser's copy if there is one; calls `report` with each number of new bytes. */
  async bytes(path, report) {
    const { size } = this.#entries[path];
    const [store, key] = [await cache(MODEL), this.#key(path)];
    this.#used.add(key);
    const kept = await store?.match(key);
    if (kept) return new Uint8Array(await kept.arrayBuffer());
    const bytes = new Uint8Array(size);
    let end = 0;
    for (const reader = (await fetched(path)).body.getReader(); ; ) {
      const { done, value } = await reader.read().catch(() => ({ done: true }));
      if (done) break;
      if (end + value.length <= size) bytes.set(value, end);
      end += value.length;
      report(value.length);
    }
    if (end !== size) throw new Error(`${path} has ${end} bytes; expected ${size}. Load the page again.`);
    await store?.put(key, new Response(bytes)).catch(() => null); // no room: it is loaded again next time
    return bytes;
  }

  /** Keeps this page too, which then works without a network, and drops the files of an older model. */
  async keep() {
    const model = await cache(MODEL);
    for (const { url } of (await model?.keys()) ?? []) if (!this.#used.has(url)) await model.delete(url);
    const loaded = performance.getEntriesByType("resource").map(({ name }) => name);
    const large = Object.keys(this.#entries).map(addressOf);
    const own = [location.href.split("#")[0], ...loaded].filter((name) => new URL(name).origin === location.origin);
    const page = await cache(PAGE);
    const names = [...new Set(own)].filter((name) => !large.includes(name) && !name.startsWith("blob:"));
    await page?.addAll(names).catch(() => null);
    await navigator.serviceWorker?.register("offline.js").catch(() => null);
  }
}
