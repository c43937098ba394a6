/** Finds the nearest token in one text for each token of another, from unit vectors, as BERTScore matches them. */

/**
 * Returns the cosine similarities of all tokens of one text with all of another, a row for each token of the first.
 *
 * Both are tensors of unit vectors, (1, tokens, hidden).
 */
export function similarityOf(candidate, reference) {
  const hidden = candidate.dims.at(-1);
  const vectors = ({ data, dims }) =>
    Array.from({ length: dims.at(-2) }, (_, token) => data.subarray(token * hidden, (token + 1) * hidden));
  const others = vectors(reference);
  return vectors(candidate).map((one) => others.map((other) => product(one, other)));
}

/** Returns the inner product of two vectors. */
function product(one, other) {
  let sum = 0;
  for (let axis = 0; axis < one.length; axis++) sum += one[axis] * other[axis];
  return sum;
}

/** Returns, for each row, the position of its highest similarity, its value, and a shade from 0 to 1 to show it. */
export function nearestOf(similarity) {
  const all = similarity.flat();
  // similarities of a model lie close together, so shades start at their mean
  const mean = all.reduce((sum, one) => sum + one, 0) / all.length;
  const floor = Math.min(Math.max(mean, 0), 0.99);
  return similarity.map((row) => {
    const highest = row.reduce((best, one) => Math.max(best, one));
    const shade = Math.min(Math.max((highest - floor) / (1 - floor), 0), 1);
    return { place: row.indexOf(highest), similarity: highest, shade };
  });
}

/** Returns the same similarities with a row for each token of the second text. */
export function transposed(similarity) {
  return similarity[0].map((_, column) => similarity.map((row) => row[column]));
}
