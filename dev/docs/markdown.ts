/**
 * Pages whose tables come from the code. A page is written by hand, apart from what stands between
 * `<!-- table: NAME -->` and `<!-- end -->`, which is generated. Pure.
 */

/** What may stand in a table cell: no line break, no bar that ends it. */
const cell = (text: string): string => text.replaceAll(/\s*\n\s*/g, ' ').replaceAll('|', '\\|');

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

export const code = (text: string): string => `\`${text}\``;

const region = /(<!-- table: ([\w-]+) -->\n)[^]*?(<!-- end -->)/g;

export const tableNames = (page: string): string[] => [...page.matchAll(region)].map(([, , name]) => name ?? '');

/** @throws where the page has a table that nobody can make. */
export function fillTables(page: string, tables: ReadonlyMap<string, () => string>): string {
  return page.replaceAll(region, (_, begin: string, name: string, end: string) => {
    const make = tables.get(name);
    if (make === undefined) throw new Error(`there is no table "${name}"`);
    return `${begin}\n${make()}\n\n${end}`;
  });
}

/** As GitHub makes them of a heading: lower case, without punctuation, a hyphen for each space. */
export const anchorOf = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');

const withoutCode = (page: string): string => page.replaceAll(/^```[^]*?^```/gm, '').replaceAll(/`[^`\n]*`/g, '');

/** The headings of a page as anchors; one that comes again is numbered. */
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

/** Where a page's links lead that stay in the repository: a path, an anchor, or both. */
export const relativeLinks = (page: string): string[] =>
  [...withoutCode(page).matchAll(/\]\(([^)\s]+)(?: "[^"]*")?\)|^\[[^\]]+\]: (\S+)/gm)]
    .map(([, inline, reference]) => inline ?? reference ?? '')
    .filter((target) => !/^[a-z][a-z0-9+.-]*:/i.test(target));
