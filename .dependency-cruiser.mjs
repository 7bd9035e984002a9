/**
 * Which file may import which (ARCHITECTURE.md, "Code map"). `npm run check` applies these rules
 * (test/house/imports.test.ts); `npx depcruise schemas lib gateway …` does, too.
 */
// @ts-check

const rooms = ['schemas', 'lib', 'gateway', 'actors', 'host-agent', 'cli', 'ops', 'dev', 'deploy', 'bench', 'test'];
const below = (...names) => `^(${names.join('|')})/`;
const allBut = (...names) => below(...rooms.filter((room) => !names.includes(room)));

/** Files that decide: the same input gives the same output, without I/O, clock or randomness. */
export const pure = [
  below('schemas', 'actors/domain', 'gateway/vpn/render'),
  '^host-agent/(reconcile/(plan|step)|desired/wanted|spec/(reference|confinement|create-body|health-check|process-part)|docker/(image-names|kept-settings|observed|ownership)|disk/plan|tenant-network/(link-names|links|rules|mesh|vpn))\\.ts$',
  '^(gateway|actors)/.*-(decide|plan)\\.ts$',
  '^lib/(fill|time/timestamp)\\.ts$',
  '^actors/runtime/domain\\.ts$',
].join('|');

/** The rooms of an agent, from the ground up: each imports only what is below it. */
const agentRooms = [
  ['docker'],
  ['spec'],
  ['disk', 'health', 'network', 'sandbox', 'tenant-network'],
  ['desired'],
  ['volumes'],
  ['link'],
  ['logs', 'secrets', 'usage'],
  ['images', 'sessions'],
  ['reconcile'],
].map((names) => names.map((name) => `host-agent/${name}`));

/** Modules of Node that only compute. */
const computing = '^(node:)?(assert|buffer|crypto|util)$';

/** The folders and files of gateway/, from the ground up: each imports what stands before it. */
const gatewayFloors = [
  ...['metrics.ts', 'ids.ts', 'http/', 'validation/', 'vault/', 'auth/', 'call.ts', 'backend/'],
  ...['compute/', 'openapi/', 'streams/', 'audit/', 'sessions/', 'vpn/', 'secrets/', 'stats/'],
  ...['operator/', 'keys/', 'sign-in/', 'pipeline/', 'configuration/', 'access.ts', 'gateway.ts'],
];

const rule = (name, comment, from, to, severity = 'error') => ({ name, comment, severity, from, to });

/** Each of these paths imports none of those that stand behind it. */
const fromTheGroundUp = (name, comment, paths) =>
  paths.slice(0, -1).map((path, at) => rule(name, comment, { path }, { path: paths.slice(at + 1) }));

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    rule(
      'cycle',
      'Files that import each other, types included, can only be understood together.',
      { pathNot: '(^|/)node_modules/' },
      { circular: true },
    ),
    rule(
      'missing',
      'No such file or package. (What bench/ measures against has a package of its own.)',
      { pathNot: below('bench') },
      { couldNotResolve: true },
    ),
    rule(
      'schemas',
      'schemas/ imports itself and TypeBox.',
      { path: below('schemas') },
      { pathNot: below('schemas', 'node_modules/typebox') },
    ),
    rule(
      'lib',
      'Of our code, lib/ imports itself and schemas/.',
      { path: below('lib') },
      { path: allBut('lib', 'schemas') },
    ),
    ...['gateway', 'actors', 'host-agent'].map((program) =>
      rule(
        program,
        'Of our code, a program imports itself, lib/ and schemas/.',
        { path: below(program) },
        { path: allBut(program, 'lib', 'schemas') },
      ),
    ),
    rule(
      'cli',
      'The command line works with the API: of our code it imports itself, lib/ and schemas/.',
      { path: below('cli') },
      { path: allBut('cli', 'lib', 'schemas') },
    ),
    rule(
      'ops',
      "An operator's commands add to those of cli/, and read what actors store.",
      { path: below('ops') },
      { path: allBut('ops', 'cli', 'actors', 'lib', 'schemas') },
    ),
    rule(
      'tests',
      'Only tests and benchmarks import tests and benchmarks.',
      { pathNot: below('test', 'bench') },
      { path: below('test', 'bench') },
    ),
    rule(
      'unit',
      'A unit test needs no server and fetches no tool; one that does stands in test/integration.',
      { path: '^test/(schemas|lib|gateway|actors|host-agent)/.*\\.test\\.ts$' },
      { path: below('dev/servers', 'dev/fetch'), reachable: true },
    ),
    ...fromTheGroundUp(
      'floors',
      'A folder of gateway/ imports what stands below it (ARCHITECTURE.md, "Inside a gateway").',
      gatewayFloors.map((name) => `^gateway/${name.replaceAll('.', '\\.')}`),
    ),
    ...fromTheGroundUp(
      'agent',
      'A room of the agent imports only rooms below it; what it has to say to those above is an event.',
      agentRooms.map((names) => below(...names)),
    ),
    rule('main', 'main.ts starts a program; nothing imports it.', {}, { path: '(^|/)main\\.ts$' }),
    rule(
      'runtime',
      'actors/runtime knows no domain: it is given one.',
      { path: below('actors/runtime') },
      { path: below('actors'), pathNot: below('actors/runtime') },
    ),
    rule(
      'pure',
      'A pure file imports pure files, and of Node what only computes. Types of others are welcome.',
      { path: pure },
      { pathNot: [pure, below('node_modules'), computing], dependencyTypesNot: ['type-only'] },
    ),
    rule(
      'production',
      'What production imports stands in `dependencies`. Types are gone by then.',
      { path: below('schemas', 'lib', 'gateway', 'actors', 'host-agent', 'cli', 'ops') },
      { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['type-only'] },
    ),
  ],
  options: {
    doNotFollow: { path: below('node_modules') },
    exclude: { path: below('dist') },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      extensions: ['.ts', '.mjs', '.js', '.json'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
