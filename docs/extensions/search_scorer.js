// Ranks pages as Sphinx does, but the API's after others, and a page first for words that are on many; for a query as
// long as a message, Troubleshooting, which quotes them, counts double.
const FIRST = {
  baseline: "idf_and_rescaling",
  csv: "tables",
  int8: "export",
  json: "tables",
  layer: "which_metric",
  significance: "which_system",
};

var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([page, , , , score]) => {
    const words = new URLSearchParams(location.search).get("q").trim().split(/\s+/);
    if (page === FIRST[words.join(" ").toLowerCase()]) return score + 30;
    if (page.startsWith("reference/") || page.startsWith("project/")) return score - 30;
    return page === "troubleshooting" && words.length > 3 ? 2 * score : score;
  },
};
