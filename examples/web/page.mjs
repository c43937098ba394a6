/** The page: scores the texts in its boxes, and shows the matching tokens and any errors. */

import { pairsOf, rescaling } from "./bertscore.mjs";
import { Model } from "./model.mjs";

const byId = (id) => document.getElementById(id);
const shown = (number) => number.toFixed(3).replace("-", "\u2212");

/** Returns the lines of both boxes, up to the last one that is not empty in both. */
function lines() {
  const sides = ["candidates", "references"].map((id) => byId(id).value.split("\n"));
  const number = Math.max(...sides.map((side) => side.findLastIndex((line) => line) + 1), 1);
  return sides.map((side) => side.slice(0, number));
}

/** Shows the scores of a pair, and the tokens of both sides, each with its nearest token on the other side. */
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
  element.tabIndex = -1; // the arrow keys move between tokens
  element.textContent = token.text;
  element.ariaLabel = `${token.text}, nearest ${other.text}, ${shown(token.nearest.similarity)}`;
  element.dataset.match = `${token.text} \u2192 ${other.text}: ${shown(token.nearest.similarity)}`;
  element.classList.toggle("unweighted", !token.weighs);
  if (token.weighs) element.style.setProperty("--shade", token.nearest.shade.toFixed(3));
  else element.dir = "ltr"; // so that the text alone sets the direction of the list
  return element;
}

/** Marks a token and its nearest one, and shows their similarity. */
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
  const pairs = pairsOf(...lines());
  const rescale = rescaling(model.manifest, byId("rescale").value);
  const { scores, numCut } = await model.scorer.score(pairs);
  byId("cut").textContent = `Longer than the model takes: ${numCut}. The ends of such texts are not scored.`;
  byId("cut").hidden = !numCut;
  for (const [place, texts] of pairs.entries()) {
    const title = pairs.length > 1 ? `Pair ${place + 1}` : "Scores";
    show(rescale(scores[place]), await model.match(texts), title);
  }
}

/** Runs a slow action, with a status message meanwhile, and shows its error if it fails. */
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

const model = await attempt("Loading the model…", Model.load);
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
