/** The names in a query of Prometheus, which itself checks the syntax. */

const keywords = new Set(['and', 'bool', 'by', 'group_left', 'group_right', 'ignoring', 'offset', 'on', 'or']);
const aggregating = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^()]*)\)/g;
const selectors = /\{([^{}]*)\}/g;
const identifiers = /[a-zA-Z_:][\w:]*/g;

export interface Names {
  readonly metrics: readonly string[];
  readonly labels: readonly string[];
}

/** The metrics and the labels that a query names. */
export function namesIn(query: string): Names {
  const unquoted = query.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""');
  const listed = [aggregating, selectors].flatMap((pattern) => [...unquoted.matchAll(pattern)].map(([, list]) => list));
  const rest = unquoted
    .replaceAll(aggregating, ' ')
    .replaceAll(selectors, ' ')
    .replaceAll(/\[[^\]]*\]/g, ' ')
    .replaceAll(/[a-zA-Z_]\w*\s*\(/g, '(')
    .replaceAll(/\b\d\w*/g, ' ');
  return {
    metrics: [...new Set(rest.match(identifiers) ?? [])].filter((name) => !keywords.has(name)),
    labels: [...new Set(listed.flatMap((list = '') => list.match(identifiers) ?? []))],
  };
}
