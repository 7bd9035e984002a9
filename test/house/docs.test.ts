/** The pages in docs/ agree with the code, and every link has a target. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import t from 'tap';
import { grantableCapabilities } from '../../host-agent/spec/confinement.ts';
import { anchorOf, anchorsOf, fillTables, relativeLinks, table, tableNames } from '../../dev/docs/markdown.ts';
import { boardFiles } from '../../dev/dashboards/boards.ts';
import { pages, programSettings, tables } from '../../dev/docs/pages.ts';
import { programMetrics } from '../../dev/docs/program-metrics.ts';
import { defaultText } from '../../dev/docs/tables.ts';
import { errorWords, reasonWords, settingWords, statusWords, toolWords, toolingWords } from '../../dev/docs/words.ts';
import { repositoryRoot } from '../../dev/paths.ts';
import { tools } from '../../dev/fetch/tool-table.ts';
import { securityEventKinds, signedOutEvent } from '../../gateway/audit/security-events.ts';
import { readSettings, type Settings } from '../../lib/config.ts';
import { reasons } from '../../schemas/api/container.ts';
import { errorStatus } from '../../schemas/errors.ts';
import { containerStatuses } from '../../schemas/words.ts';

const read = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8');
const below = (folder: string, ending: string): string[] =>
  existsSync(join(repositoryRoot, folder))
    ? readdirSync(join(repositoryRoot, folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith(ending))
        .map((name) => join(folder, name))
        .sort()
    : [];

const rootPages = ['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'];
const allPages = [...rootPages, ...below('docs', '.md')];
const sources = ['schemas', 'lib', 'gateway', 'actors', 'host-agent', 'cli', 'ops', 'dev']
  .flatMap((folder) => below(folder, '.ts'))
  .filter((path) => !path.startsWith('dev/docs/'));
const code = sources.map(read).join('\n');
const allMetrics = Object.values(programMetrics).flat();
const tooling = [...Object.keys(toolingWords), ...Object.values(tools).map(({ variable }) => variable)];

t.test('the tables and the dashboards are as `npm run docs` writes them', (t) => {
  for (const page of pages) t.equal(read(page), fillTables(read(page), tables), page);
  for (const [path, textOf] of boardFiles) t.equal(read(path), textOf(), path);
  t.same(below('deploy/grafana/dashboards', '.json'), [...boardFiles.keys()].sort(), 'no other dashboard');
  const placed = pages.flatMap((page) => tableNames(read(page)));
  t.same([...placed].sort(), [...tables.keys()].sort(), 'each table stands on one page');
  t.end();
});

t.test('every name has a description', (t) => {
  const filled = (words: object): string[] =>
    Object.entries(words).flatMap(([name, word]: [string, unknown]) => {
      const texts = typeof word === 'object' && word !== null ? Object.values(word) : [word];
      return texts.every((text) => typeof text === 'string' && text.trim().length > 3) ? [name] : [];
    });
  t.same(filled(errorWords).sort(), Object.keys(errorStatus).sort(), 'error codes');
  t.same(filled(statusWords).sort(), [...containerStatuses].sort(), 'statuses');
  t.same(filled(reasonWords).sort(), [...reasons].sort(), 'reasons');
  t.same(filled(toolWords).sort(), Object.keys(tools).sort(), 'tools');
  t.same(
    allMetrics.filter(({ watch }) => watch.trim().length <= 3).map(({ name }) => name),
    [],
    'metrics',
  );
  const settingNames = Object.entries(programSettings).flatMap(([program, settings]) =>
    Object.keys(settings).map((name) => `${program} ${name}`),
  );
  t.same(
    filled(settingWords).filter((name) => !settingNames.includes(name)),
    [],
    'words of settings that are no more',
  );
  t.end();
});

t.test('the code describes each metric and each setting', (t) => {
  for (const { name, help } of allMetrics) t.match(help, /^.{8,}[.]$/, name);
  for (const [program, settings] of Object.entries(programSettings)) {
    for (const [name, { doc, form }] of Object.entries(settings)) {
      t.match(doc, /^.{5,}[.]$/, `${program} ${name}`);
      t.ok(form.length > 0, `${program} ${name}`);
    }
  }
  t.end();
});

t.test('every default that is shown is a valid value', (t) => {
  for (const [program, settings] of Object.entries(programSettings)) {
    for (const [name, setting] of Object.entries(settings)) {
      if (setting.fallback === undefined) continue;
      const shown = setting.fallback.text ?? defaultText(setting.fallback.value);
      const one: Settings = { [name]: setting };
      t.same(readSettings(one, { [name]: shown }), { [name]: setting.fallback.value }, `${program} ${name}`);
    }
  }
  t.end();
});

t.test('docs/security.md lists every attack that runs as a test, and no other', (t) => {
  const listed = [...read('docs/security.md').matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name = '']) => name);
  const run = below('test/attacks', '.test.ts').map((path) => basename(path, '.test.ts'));
  t.same(listed.sort(), run.sort());
  t.end();
});

t.test('each paragraph of docs/security.md has claims, and each claim a test', (t) => {
  const page = read('docs/security.md');
  const [, claims = ''] = /^## Claims and their tests$([^]*?)^## /m.exec(page) ?? [];
  const rows = [...claims.matchAll(/^\| (.+?) \| (.+?) \| (`.+`) \|$/gm)];
  const tests = rows.flatMap(([, , , paths = '']) => [...paths.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path));
  t.same(
    tests.filter((path) => !existsSync(join(repositoryRoot, 'test', `${path}.test.ts`))),
    [],
    'each test exists',
  );
  const plain = (text: string): string => text.replaceAll('’', "'").replace(/\.$/, '');
  const paragraphs = [...page.matchAll(/^\*\*([^*]+)\*\*/gm)].map(([, title = '']) => plain(title));
  const claimed = new Set(rows.map(([, where = '']) => plain(where)));
  t.ok(paragraphs.length > 20);
  t.same(
    paragraphs.filter((title) => !claimed.has(title)),
    [],
    'each paragraph has a claim',
  );
  t.same(
    below('test/attacks', '.test.ts').filter((path) => !tests.includes(path.slice('test/'.length, -'.test.ts'.length))),
    [],
    'each attack breaks a claim in vain',
  );
  t.end();
});

t.test('every link has a target', (t) => {
  const faults = allPages.flatMap((page) =>
    relativeLinks(read(page)).flatMap((link) => {
      const [path = '', anchor] = link.split('#', 2);
      const target = path === '' ? page : normalize(join(dirname(page), path));
      if (!existsSync(join(repositoryRoot, target))) return [`${page}: ${link}`];
      const isPage = target.endsWith('.md') && statSync(join(repositoryRoot, target)).isFile();
      return anchor === undefined || !isPage || anchorsOf(read(target)).has(anchor) ? [] : [`${page}: ${link}`];
    }),
  );
  t.same(faults, []);
  t.end();
});

t.test('pages name only metrics, settings and events that exist', (t) => {
  const names = new Set(allMetrics.flatMap(({ name }) => ['', '_bucket', '_sum', '_count'].map((end) => name + end)));
  const settings = new Set([
    ...Object.values(programSettings).flatMap((table) => Object.keys(table)),
    ...tooling,
    ...grantableCapabilities,
    'NET_RAW',
  ]);
  const rules = [...below('docs', '.md'), ...below('deploy/prometheus', '.yml')];
  const metricFaults = rules.flatMap((page) =>
    [...read(page).matchAll(/\b(?:longshore_(?:gateway|actors|agent|nats|trace|event|build)|process)_\w+_\w+/g)]
      .filter(([name]) => !names.has(name))
      .map(([name]) => `${page}: ${name}`),
  );
  t.same(metricFaults, [], 'metrics');
  const guides = ['docs/runbook.md', 'docs/deploy.md', 'docs/configuration.md', 'docs/metrics.md'];
  const settingFaults = guides.flatMap((page) =>
    [...read(page).matchAll(/`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=[^`]*)?`/g)]
      .filter(([, name = '']) => !settings.has(name))
      .map(([, name]) => `${page}: ${name}`),
  );
  t.same(settingFaults, [], 'settings');
  const events = [...read('docs/runbook.md').matchAll(/event `([a-z]+(?:_[a-z]+)*)`/g)].map(([, name = '']) => name);
  t.ok(events.length > 10, 'the runbook names events of the log');
  // Some names are put together where they are logged, as `nats_${status}` is.
  const isLogged = (name: string): boolean =>
    code.includes(`'${name}'`) || code.includes(`\`${name.split('_')[0]}_\${`);
  t.same(
    events.filter((name) => !isLogged(name)),
    [],
    'events of the log',
  );
  const audit = read('docs/backup.md').split('## Re-apply revocations')[1]?.split('\n## ')[0] ?? '';
  t.same(
    [...audit.matchAll(/^\| `([a-z_]+)`/gm)].map(([, name]) => name).sort(),
    [...Object.values(securityEventKinds).map(({ event }) => event), signedOutEvent].sort(),
    'docs/backup.md has each event that the gateway logs for operators to repeat',
  );
  t.end();
});

t.test('each alert is named in the part of the runbook that it links to', (t) => {
  const parts = new Map(
    read('docs/runbook.md')
      .split(/^## /m)
      .slice(1)
      .map((part) => [anchorOf(part.split('\n')[0] ?? ''), part]),
  );
  const alerts = [...read('deploy/prometheus/alerts.yml').matchAll(/- alert: (\S+)\n((?: {8}.*\n?)*)/g)].map(
    ([, name = '', rule = '']) => ({ name, link: /runbook: docs\/runbook\.md#(\S+)/.exec(rule)?.[1] ?? 'none' }),
  );
  t.ok(alerts.length > 10);
  t.same(
    alerts.filter(({ name, link }) => parts.get(link)?.includes(`\`${name}\``) !== true),
    [],
    'name the alert under **Alerts:** in its part of docs/runbook.md',
  );
  t.end();
});

t.test('features, runbook and deploy agree on what may run twice', (t) => {
  const said = ['docs/features.md', 'docs/runbook.md', 'docs/deploy.md'].map(
    (page) =>
      /A container can run on two hosts at once only after [^.]*\./.exec(read(page).replaceAll(/\s+/g, ' '))?.[0],
  );
  t.match(said[0], /STOP_ON_DISCONNECT/);
  t.same([...new Set(said)], [said[0]]);
  t.end();
});

t.test('comments cite only pages and headings that exist', (t) => {
  const inOneLine = (text: string): string => text.replaceAll(/\s*\n\s*(?:\*|\/\/) /g, ' ');
  const faults = sources.flatMap((path) =>
    [...inOneLine(read(path)).matchAll(/\b(docs\/[\w/-]+\.md|ARCHITECTURE\.md)(?:, "([^"]+)")?/g)].flatMap(
      ([, page = '', heading]) => {
        if (!existsSync(join(repositoryRoot, page))) return [`${path}: ${page}`];
        return heading === undefined || anchorsOf(read(page)).has(anchorOf(heading)) ? [] : [`${path}: ${heading}`];
      },
    ),
  );
  t.same(faults, []);
  const quoted = [...allMetrics.map(({ watch }) => watch), ...Object.values(reasonWords).map(({ todo }) => todo)]
    .flatMap((text) => [...text.matchAll(/see the runbook, “([^”]+)”/g)])
    .map(([, heading = '']) => heading);
  const headings = anchorsOf(read('docs/runbook.md'));
  t.same(
    quoted.filter((heading) => !headings.has(anchorOf(heading))),
    [],
    'the runbook',
  );
  t.end();
});

t.test('tables, anchors and links are parsed and written correctly', (t) => {
  t.equal(table(['a', 'b'], [['x|y', 'two\nlines']]), '| a | b |\n| --- | --- |\n| x\\|y | two lines |');
  const page = 'before\n<!-- table: one -->\nold\n<!-- end -->\nafter';
  const filled = fillTables(page, new Map([['one', () => 'new']]));
  t.equal(filled, 'before\n<!-- table: one -->\n\nnew\n\n<!-- end -->\nafter');
  t.equal(fillTables(filled, new Map([['one', () => 'new']])), filled, 'twice is once');
  t.throws(() => fillTables(page, new Map()), /no table "one"/);
  t.equal(anchorOf('NATS is away: what to do?'), 'nats-is-away-what-to-do');
  t.same([...anchorsOf('# A b\n```\n# no\n```\n## A b\n')], ['a-b', 'a-b-1']);
  t.same(relativeLinks('[a](x.md) [b](https://x) `[c](y.md)` [d](#e) ![f](g.png "h")\n[i]: j.md\n'), [
    'x.md',
    '#e',
    'g.png',
    'j.md',
  ]);
  t.end();
});

t.test('no command of the docs gives a tenant that exists its default caps', (t) => {
  const puts = allPages.flatMap((path) =>
    [...read(path).matchAll(/-X PUT [^`]*?operator\/tenants\/\S+/g)].map(([command]) => `${path}: ${command}`),
  );
  // The first hour makes the tenant.
  t.equal(puts.length, 1, `${puts.join('\n')}: write "longshore tenant set", which keeps what is not named`);
  t.end();
});
