// Ranks pages as Sphinx does, but the API's after others; for a query as long as a message, Troubleshooting, which quotes
// them, counts double. The keywords of pages come before all of that: see finding.py.
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
    if (page.startsWith("reference/") || page.startsWith("project/")) return score - 30;
    return page === "troubleshooting" && words.length > 3 ? 2 * score : score;
  },
};
