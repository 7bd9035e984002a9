/**
 * Fills the generated tables of a Markdown page: everything between `<!-- table: NAME -->` and
 * `<!-- end -->`. The rest of a page is written by hand. Pure.
 */

/** Escapes text for a table cell, which can't contain a line break or a bare bar. */
const cell = (text: string): string => text.replaceAll(/\s*\n\s*/g, ' ').replaceAll('|', '\\|');

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

export const code = (text: string): string => `\`${text}\``;

const region = /(<!-- table: ([\w-]+) -->\n)[^]*?(<!-- end -->)/g;

export const tableNames = (page: string): string[] => [...page.matchAll(region)].map(([, , name]) => name ?? '');

/** @throws Error if the page names a table that is not in `tables`. */
export function fillTables(page: string, tables: ReadonlyMap<string, () => string>): string {
  return page.replaceAll(region, (_, begin: string, name: string, end: string) => {
    const make = tables.get(name);
    if (make === undefined) throw new Error(`there is no table "${name}"; add it to dev/docs/pages.ts`);
    return `${begin}\n${make()}\n\n${end}`;
  });
}

/**
 * The anchor that GitHub gives a heading: lower case, without punctuation, a hyphen for each space.
 */
export const anchorOf = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');

const withoutCode = (page: string): string => page.replaceAll(/^```[^]*?^```/gm, '').replaceAll(/`[^`\n]*`/g, '');

/** The anchors of a page's headings; a repeated one gets a number, as on GitHub. */
export function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of page.replaceAll(/^```[^]*?^```/gm, '').matchAll(/^#{1,6} (.+)$/gm)) {
    const anchor = anchorOf(heading);
    let name = anchor;
    for (let again = 1; anchors.has(name); again++) name = `${anchor}-${again}`;
    anchors.add(name);
  }
  return anchors;
}

/** Targets of a page's links within the repository: a path, an anchor, or both. */
export const relativeLinks = (page: string): string[] =>
  [...withoutCode(page).matchAll(/\]\(([^)\s]+)(?: "[^"]*")?\)|^\[[^\]]+\]: (\S+)/gm)]
    .map(([, inline, reference]) => inline ?? reference ?? '')
    .filter((target) => !/^[a-z][a-z0-9+.-]*:/i.test(target));
