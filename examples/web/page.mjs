/** The page: loads the bundle beside it, scores what is written, and shows which tokens match. */

import { checkManifest, padded, pairsOf, rescaling, Scorer } from "./bertscore.mjs";
import { nearestOf, similarityOf, transposed } from "./matches.mjs";

const byId = (id) => document.getElementById(id);
const shown = (number) => number.toFixed(3).replace("-", "\u2212");
const linesOf = (field) => field.value.replace(/\n+$/, "").split("\n");

async function fetched(path) {
  const response = await fetch(path).catch(() => null);
  if (!response) throw new Error(`${path} cannot be reached.`);
  if (!response.ok) throw new Error(`${path} is missing: the server answered ${response.status}.`);
  return response;
}

async function fetchedJson(path) {
  const response = await fetched(path);
  return response.json().catch(() => {
    throw new Error(`${path} is no JSON.`);
  });
}

const fetchedBytes = async (path) => new Uint8Array(await (await fetched(path)).arrayBuffer());

/** Loads the packages and the bundle. */
async function load() {
  if (typeof WebAssembly === "undefined") throw new Error("This browser does not run WebAssembly, which the model needs.");
  const manifest = await fetchedJson("bundle/bertscore.json");
  checkManifest(manifest);
  const [ort, { Tokenizer }] = await Promise.all([
    import("./lib/ort.wasm.bundle.min.mjs"),
    import("./lib/tokenizers.min.mjs"),
  ]);
  ort.env.wasm.proxy = true; // in a worker, so that the page goes on answering
  const [tokenizer, data, scoring, encoder] = await Promise.all([
    fetchedJson("bundle/tokenizer.json"),
    ...["model.onnx.data", "scoring.onnx", "model.onnx"].map((name) => fetchedBytes(`bundle/${name}`)),
  ]);
  const externalData = [{ path: "model.onnx.data", data }];
  const open = (graph) => ort.InferenceSession.create(graph, { externalData, logSeverityLevel: 3 });
  const names = new Tokenizer(tokenizer, {});
  const scorer = new Scorer(manifest, names, await open(scoring), ort.Tensor);
  const session = await open(encoder);

  /** Returns the unit vectors of the tokens of a text, (1, tokens, hidden). */
  async function embed(ids) {
    const [input_ids, attention_mask] = padded(ort.Tensor, [ids], manifest.pad_id);
    const feeds = { input_ids, attention_mask };
    const wanted = manifest.inputs.map((name) => [name, feeds[name]]);
    return (await session.run(Object.fromEntries(wanted)))[manifest.output];
  }

  /** Returns each token of a text: as a person would write it, and whether it weighs anything. */
  function tokensOf(ids) {
    return ids.map((id) => {
      const text = names.decode([id], { clean_up_tokenization_spaces: false }).trim();
      const isText = text && !text.includes("\ufffd"); // and no part of a character
      return { text: isText ? text : names.id_to_token(id), weighs: !manifest.zero_weight_ids.includes(id) };
    });
  }

  return { manifest, scorer, embed, tokensOf };
}

/** Returns the tokens of both texts, each with its nearest of the other. */
async function matchesOf(model, texts) {
  const ids = texts.map((text) => model.scorer.encode(text).ids);
  const similarity = similarityOf(await model.embed(ids[0]), await model.embed(ids[1]));
  const sides = [similarity, transposed(similarity)];
  return sides.map((rows, side) => {
    const nearest = nearestOf(rows);
    return model.tokensOf(ids[side]).map((token, place) => ({ ...token, nearest: nearest[place] }));
  });
}

function show(score, sides, title) {
  const section = byId("pair").content.cloneNode(true).firstElementChild;
  const find = (selector) => section.querySelector(selector);
  find("h2").textContent = title;
  for (const [name, value] of Object.entries(score)) {
    find(`.${name}`).value = value;
    find(`.${name}`).textContent = shown(value);
  }
  const lists = [find(".candidate"), find(".reference")];
  sides.forEach((tokens, side) => {
    const others = sides[1 - side];
    lists[side].append(...tokens.map((token) => button(token, others[token.nearest.place])));
    lists[side].firstElementChild.tabIndex = 0;
    lists[side].addEventListener("keydown", walk);
    for (const event of ["pointerover", "focusin"]) {
      lists[side].addEventListener(event, ({ target }) => {
        const place = [...lists[side].children].indexOf(target);
        if (place >= 0) mark(section, target, lists[1 - side].children[sides[side][place].nearest.place]);
      });
    }
  });
  byId("results").append(section);
}

function button(token, other) {
  const element = document.createElement("button");
  element.type = "button";
  element.tabIndex = -1; // the arrow keys lead from one to the next
  element.textContent = token.text;
  element.ariaLabel = `${token.text}, nearest ${other.text}, ${shown(token.nearest.similarity)}`;
  element.dataset.match = `${token.text} \u2192 ${other.text}: ${shown(token.nearest.similarity)}`;
  element.classList.toggle("unweighted", !token.weighs);
  if (token.weighs) element.style.setProperty("--shade", token.nearest.shade.toFixed(3));
  return element;
}

/** Marks a token and its nearest one, and says how similar they are. */
function mark(section, token, nearest) {
  for (const element of section.querySelectorAll(".nearest")) element.classList.remove("nearest");
  token.classList.add("nearest");
  nearest.classList.add("nearest");
  section.querySelector(".match").textContent = token.dataset.match;
}

/** Moves the focus among the tokens of a text. */
function walk(event) {
  const list = event.currentTarget;
  const tokens = [...list.children];
  const forward = getComputedStyle(list).direction === "rtl" ? -1 : 1;
  const steps = { ArrowRight: forward, ArrowLeft: -forward, Home: -tokens.length, End: tokens.length };
  if (!(event.key in steps)) return;
  event.preventDefault();
  const place = tokens.indexOf(document.activeElement);
  const next = tokens[Math.min(Math.max(place + steps[event.key], 0), tokens.length - 1)];
  tokens[place].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

async function compare(model) {
  const pairs = pairsOf(linesOf(byId("candidates")), linesOf(byId("references")));
  const rescale = rescaling(model.manifest, byId("rescale").value);
  const { scores, numCut } = await model.scorer.score(pairs);
  byId("cut").textContent = `Longer than the model takes: ${numCut}. The ends of such texts are not scored.`;
  byId("cut").hidden = !numCut;
  for (const [place, texts] of pairs.entries()) {
    const title = pairs.length > 1 ? `Pair ${place + 1}` : "Scores";
    show(rescale(scores[place]), await matchesOf(model, texts), title);
  }
}

/** Does what takes a while, says so, and tells what goes wrong. */
async function attempt(doing, action) {
  byId("go").disabled = true;
  byId("error").hidden = true;
  byId("status").textContent = doing;
  try {
    return await action();
  } catch (error) {
    byId("error").textContent = error.message ?? String(error);
    byId("error").hidden = false;
    return null;
  } finally {
    byId("status").textContent = "";
    byId("go").disabled = false;
  }
}

const model = await attempt("Loading the model…", load);
if (!model) byId("go").disabled = true;
else {
  byId("rescale").append(...Object.keys(model.manifest.baselines).map((language) => new Option(language, language)));
  byId("rescale-field").hidden = byId("rescale").length < 2;
}
byId("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("go").click();
});
byId("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  byId("results").replaceChildren();
  for (const id of ["results", "cut", "legend"]) byId(id).hidden = true;
  await attempt("Comparing…", () => compare(model));
  for (const id of ["results", "legend"]) byId(id).hidden = !byId("results").childElementCount;
});
