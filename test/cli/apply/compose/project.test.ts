import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { filesIn, projectIn } from '../../../../cli/apply/compose/project.ts';
import { readText } from '../../../../cli/apply/file/read.ts';
import { projectOf } from '../../../../cli/apply/file/checks.ts';
import { temporaryFolder } from '../../../support/folder.ts';

function folderOf(t: Test, name: string, files: Readonly<Record<string, string>> = {}): string {
  const folder = join(temporaryFolder(t), name);
  mkdirSync(folder);
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
  return folder;
}

const services = 'services: {db: {image: a}, web: {image: a, container_name: "${WEB:-front}"}}\n';

t.test('a project is named by -p, COMPOSE_PROJECT_NAME, its file or its folder', (t) => {
  const rows = [
    ['My App.1', services, {}, undefined, 'myapp1'],
    ['_-x', services, {}, undefined, 'x'],
    ['app', `name: blog\n${services}`, {}, undefined, 'blog'],
    ['app', `name: "\${NAME}"\n${services}`, { NAME: 'filled' }, undefined, 'filled'],
    ['app', `name: blog\n${services}`, { COMPOSE_PROJECT_NAME: 'shell' }, undefined, 'shell'],
    ['app', `name: blog\n${services}`, { COMPOSE_PROJECT_NAME: 'shell' }, 'given', 'given'],
  ] as const;
  for (const [folder, text, env, project, name] of rows) {
    const read = readText('compose.yml', text, { folder: folderOf(t, folder), env, project });
    t.same(read.wanted?.projects, [name]);
    t.same(
      read.wanted?.containers.map((one) => [one.name, one.document.project]),
      [
        [`${name}-db`, name],
        ['front', name],
      ],
      'its containers',
    );
  }
  const folder = folderOf(t, 'app', { '.env': 'COMPOSE_PROJECT_NAME=beside\n' });
  const read = readText('compose.yml', 'services: {a: {image: "x:${COMPOSE_PROJECT_NAME}"}}', { folder, env: {} });
  t.match(read.wanted?.containers, [{ name: 'beside-a', document: { image: { tag: 'beside' } } }]);
  t.end();
});

t.test('the project of containers is a DNS label', (t) => {
  for (const [name, label] of [
    ['my_app', 'my-app'],
    ['a__b-', 'a-b'],
  ] as const) {
    const { wanted } = readText('compose.yml', services, { folder: folderOf(t, 'x'), env: {}, project: name });
    t.match(wanted, { projects: [label], containers: [{ name: `${name}-db`, document: { project: label } }, {}] });
  }
  const { faults } = readText('longshore.yml', 'name: My.App\ncontainers: {}\n', { folder: folderOf(t, 'y'), env: {} });
  t.match(faults, [{ field: 'name', message: /^must be a DNS label: / }]);
  t.equal(projectOf({ env: { LONGSHORE_APPLY: 'My.App' } }), 'my-app', 'of a file of a development build of 0.2.0');
  t.equal(projectOf({ env: { LONGSHORE_APPLY: 'My.App' }, project: 'shop' }), 'shop');
  t.end();
});

t.test('a text that names no project is refused', (t) => {
  for (const [folder, text, env, project, message] of [
    ['app', services, {}, 'My App', /^-p: the project's name "My App" must have lower-case letters/],
    ['app', services, { COMPOSE_PROJECT_NAME: '-x' }, undefined, /^COMPOSE_PROJECT_NAME: /],
    ['app', `name: A\n${services}`, {}, undefined, /^compose\.yml: name: /],
    ['日本', services, {}, undefined, /give -p, or "name" in compose\.yml/],
  ] as const)
    t.throws(() => readText('compose.yml', text, { folder: folderOf(t, folder), env, project }), { message });
  t.end();
});

t.test('two services with one name', (t) => {
  const text = 'services: {a: {image: x, container_name: one}, b: {image: x, container_name: one}}';
  const { faults } = readText('compose.yml', text, { folder: folderOf(t, 'app'), env: {} });
  t.match(faults, [{ field: 'services.b', message: `"one" is the name of another service's container, too` }]);
  t.end();
});

t.test('the project of a folder, and what its services are called', (t) => {
  const folder = folderOf(t, 'shop', { 'compose.yml': services, 'docker-compose.yml': services });
  t.same(filesIn({ folder, env: {} }), { file: 'compose.yml', overrides: [], others: ['docker-compose.yml'] });
  const project = projectIn({ folder, env: { WEB: 'exact' } });
  t.match(project, { name: 'shop', file: 'compose.yml' });
  t.same(
    ['db', 'web', 'other', 'toString'].map((service) => project?.containerOf(service)),
    ['shop-db', 'exact', undefined, undefined],
  );
  t.equal(projectIn({ folder: folderOf(t, 'none'), env: {} }), undefined);
  t.equal(projectIn({ folder: folderOf(t, 'bad', { 'compose.yml': 'services: [' }), env: {} }), undefined);
  const both = folderOf(t, 'both', { 'longshore.yml': '', 'compose.yml': services });
  t.equal(projectIn({ folder: both, env: {} }), undefined, 'longshore.yml is what counts there');
  t.end();
});

t.test('the files of a folder where none is named', (t) => {
  const over = 'services: {web: {container_name: over}}';
  const files = { 'compose.yml': services, 'compose.override.yml': over, 'docker-compose.override.yml': over };
  const folder = folderOf(t, 'shop', { ...files, 'more.yml': `name: more\n${over}` });
  t.same(filesIn({ folder, env: {} }), { file: 'compose.yml', overrides: ['compose.override.yml'], others: [] });
  t.equal(projectIn({ folder, env: {} })?.containerOf('web'), 'over');
  const named = { COMPOSE_FILE: 'compose.yml:more.yml' };
  t.same(filesIn({ folder, env: named }), { file: 'compose.yml', overrides: ['more.yml'], others: [] });
  t.match(projectIn({ folder, env: named }), { name: 'more', file: 'compose.yml' });
  writeFileSync(join(folder, '.env'), 'COMPOSE_FILE=more.yml,compose.yml\nCOMPOSE_PATH_SEPARATOR=,');
  t.same(filesIn({ folder, env: {} }), { file: 'more.yml', overrides: ['compose.yml'], others: [] });
  t.match(filesIn({ folder, env: { COMPOSE_DISABLE_ENV_FILE: '1' } }), { file: 'compose.yml' });
  writeFileSync(join(folder, 'longshore.yml'), 'containers: {}');
  t.match(filesIn({ folder, env: {} }), { file: 'longshore.yml', overrides: [] }, 'what is of Longshore counts first');
  t.equal(filesIn({ folder: folderOf(t, 'none'), env: {} }), undefined);
  t.end();
});

t.test('a file is found in a folder above, the nearest first', (t) => {
  const above = folderOf(t, 'shop', { 'compose.yml': services, 'compose.override.yml': services, '.env': 'WEB=exact' });
  const folder = join(above, 'src', 'web');
  mkdirSync(folder, { recursive: true });
  t.same(filesIn({ folder, env: {} }), {
    file: '../../compose.yml',
    overrides: ['../../compose.override.yml'],
    others: [],
  });
  const project = projectIn({ folder, env: {} });
  t.match(project, { name: 'shop', file: '../../compose.yml' });
  t.equal(project?.containerOf('db'), 'shop-db');
  t.equal(project?.containerOf('web'), 'exact', 'its .env is that of its folder');
  writeFileSync(join(above, 'src', 'longshore.yml'), 'containers: {}');
  t.same(filesIn({ folder, env: {} }), { file: '../longshore.yml', overrides: [], others: [] });
  t.equal(projectIn({ folder, env: {} }), undefined);
  writeFileSync(join(folder, 'docker-compose.yaml'), services);
  t.match(filesIn({ folder, env: {} }), { file: 'docker-compose.yaml', overrides: [] });
  const named = { COMPOSE_FILE: join(above, 'compose.yml') };
  t.match(filesIn({ folder: above, env: named }), { file: named.COMPOSE_FILE, overrides: [] });
  t.end();
});

t.test('files of variables that COMPOSE_ENV_FILES names are read in place of .env', (t) => {
  const folder = folderOf(t, 'shop', { '.env': 'A=not-this', 'one.env': 'A=1\nB=1', 'two.env': 'B=2$A\nC=$D' });
  const names = ['one.env', 'two.env'].map((name) => join(folder, name)).join(',');
  const text = 'services: {web: {image: x, environment: [A, B, C]}}';
  const { wanted } = readText('compose.yml', text, { folder, env: { COMPOSE_ENV_FILES: names, D: 'shell' } });
  t.same(wanted?.containers[0]?.document.env, { A: '1', B: '21', C: 'shell' });
  const none = { folder, env: { COMPOSE_ENV_FILES: join(folder, 'none.env') } };
  t.throws(() => readText('compose.yml', text, none), { message: /none\.env can't be read/ });
  mkdirSync(join(folder, 'other'));
  mkdirSync(join(folder, 'other', '.env'));
  const inOther = readText('compose.yml', text, { folder: join(folder, 'other'), env: {} });
  t.same(inOther.faults, [], 'a folder is no file');
  t.end();
});
