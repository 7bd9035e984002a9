/**
 * Suggests a command or an option for one that does not exist: for a misspelt name, or for one that
 * another tool has. A name that ends or removes something is suggested only for a word that asks
 * for it. Pure.
 */
import type { Command } from 'commander';
import { meant } from '../lib/validation/misspelt.ts';

/** Destructive commands and options. */
export const destructive: ReadonlySet<string> = new Set([
  ...['rm', 'stop', 'revoke', 'restore', 'logout', 'unlink', 'rotate', 'password', 'disable', 'drain'],
  ...['--prune', '--yes', '--force', '--all', '--unset', '--end-others'],
  ...['--replace', '--other-cluster', '--only-history', '--without-history', '--incarnation-above', '--now'],
]);

const list = ['ls', 'ps'];
const show = ['get', 'inspect'];
const create = ['create', 'add', 'set', 'join-token', 'run', 'login'];
const change = ['set', 'update'];
const remove = ['rm', 'logout', 'unlink'];

/**
 * Commands for names in docker, Compose, kubectl, fly, nomad and earlier releases. The first one
 * that exists beside the unknown word is suggested.
 */
const commands: Readonly<Record<string, readonly string[]>> = {
  ...{
    list,
    show,
    view: show,
    create,
    new: create,
    add: create,
    put: change,
    edit: change,
    patch: change,
  },
  ...{ delete: remove, del: remove, destroy: remove, remove, unset: remove, revoke: remove, kill: ['stop'] },
  ...{ down: ['stop'], terminate: ['stop'], select: ['use'], switch: ['use'], 'use-context': ['use'] },
  ...{ ls: ['ps'], container: ['ps'], containers: ['ps'], get: ['ps'], status: ['ps'], machine: ['ps'] },
  ...{ up: ['apply'], compose: ['apply'], deploy: ['apply'], launch: ['apply'], plan: ['apply --dry-run'] },
  ...{ diff: ['apply --dry-run'], attach: ['logs --follow'], tail: ['logs --follow'] },
  ...{ top: ['stats'], history: ['versions'], releases: ['versions'], undo: ['rollback'], ssh: ['exec'] },
  ...{
    console: ['exec'],
    sh: ['exec'],
    shell: ['exec'],
    bash: ['exec'],
    copy: ['cp'],
    info: ['whoami'],
    'port-forward': ['forward'],
    proxy: ['forward'],
    config: ['profile'],
  },
  ...{ context: ['profile'], auth: ['login'], signin: ['login'], job: ['run --job'] },
  ...{ secrets: ['secret'], registries: ['registry'], key: ['token'], tokens: ['token'], policies: ['policy'] },
  ...{ peers: ['peer'], wireguard: ['peer'], hosts: ['host ls'], node: ['host'], nodes: ['host ls'] },
  ...{ tenants: ['tenant'], orgs: ['tenant'], networks: ['network'], cordon: ['host cordon'] },
  ...{ uncordon: ['host uncordon'], join: ['host join-token'], check: ['doctor'] },
};

/** Advice for words that no single command replaces, several words for one text. */
const advices: readonly (readonly [words: string, text: string])[] = [
  ['keys', 'API tokens: "longshore token". NATS identities of a cluster: "longshore nats-keys".'],
  ['drain', 'Operators move the containers of a host with "longshore host drain".'],
  ['rename', 'A container keeps its name. Run another one under the new name.'],
  [
    'rollout',
    '"longshore update" changes a container, "longshore restart" and "longshore rollback" are commands, too.',
  ],
  ['open url', 'Longshore gives a container no URL. "longshore port" shows the addresses of its ports.'],
  ['dashboard ui', 'Longshore has no page of containers. "longshore ps" and "longshore describe" show them.'],
  ['setup init', 'Sign in with "longshore login", and bring up the containers of a file with "longshore apply".'],
  ['scale autoscale --replicas --scale', 'Longshore has no replicas. Run another container.'],
  ['build', 'Longshore builds no images. Build and push with docker, and then run "longshore run".'],
  ['push', 'Longshore has no registry. Push with docker, and then run "longshore run".'],
  ['pull', 'Hosts pull images. "longshore update --pull" brings in a tag that was pushed again.'],
  ['images image', 'Longshore has no list of images. "longshore ps" shows those that run.'],
  ['volume volumes', 'Longshore has no volumes. It keeps what the image declares as VOLUME.'],
  ['pause', 'Longshore has no pause. "longshore stop" ends the container, and "longshore start" starts it.'],
  ['cron schedule', 'Longshore has no schedules. Run "longshore run --job" from a scheduler.'],
  [
    'service services',
    'Longshore has no services. A container has a name, and its ports have addresses: "longshore port".',
  ],
  ['expose', 'Longshore has no services. "longshore update --port" publishes a port of a container.'],
  ['namespace namespaces', 'Longshore has no namespaces. A tenant has projects: "longshore ps --project".'],
  ['--since', 'Give the number of newest lines with -n, and follow with -f.'],
  ['-a', '"longshore ps" lists containers in every status.'],
  ['--previous', 'A log has the lines of all runs of its container, oldest first.'],
  ['--for', '"longshore wait" takes a status, and without one waits until the container is up or its job has ended.'],
  ['--wide', '"longshore ps --output wide" shows more of each container.'],
  ['-c', 'The command of a container follows --, such as: longshore run IMAGE -- sh -c date'],
  ['--network --link', 'The containers of a tenant reach each other by name: "longshore network names".'],
  ['--privileged', 'Longshore has no privileged containers.'],
  ['-it', 'Options stand before the container, such as: longshore exec -it web sh'],
  ['--mount --volume -v', 'Longshore has no bind mounts. It keeps what the image declares as VOLUME.'],
  ['--rm', 'It is an option of "longshore run", for a job.'],
];
const advice = new Map(advices.flatMap(([words, text]) => words.split(' ').map((word) => [word, text] as const)));

/** Options for names in other tools, as `commands` above. */
const options: Readonly<Record<string, readonly string[]>> = {
  ...{ '--tail': ['--lines'], '--limit': ['--lines'], '--publish': ['--port'], '--cpus': ['--cpu'] },
  ...{ '--output': ['--json'], '--format': ['--output', '--json'], '-q': ['--json'], '--url': ['--server'] },
  ...{ '--since': ['--from'], '--until': ['--to'], '--it': ['--tty'], '--filename': ['--file'] },
  ...{ '--filter': ['--label', '--grep'], '--selector': ['--label'] },
};

function nearOf(word: string, known: readonly string[]): string | undefined {
  const dashed = (name: string): string => name.replaceAll('_', '-');
  const near = meant(
    word,
    known.filter((name) => !destructive.has(name)).map((name) => name.replaceAll('-', '_')),
  );
  return near === undefined ? undefined : dashed(near);
}

/** A line to add to an error about an unknown word; empty if nothing is near. */
export function suggestionFor(word: string, known: readonly string[]): string {
  const words = word.startsWith('-') ? options : commands;
  const here = (Object.hasOwn(words, word) ? words[word] : undefined)?.find((candidate) =>
    known.includes(candidate.split(' ')[0] ?? ''),
  );
  const found = here ?? (advice.has(word) ? undefined : nearOf(word, known));
  if (found !== undefined) return `(Did you mean ${found}?)\n`;
  const text = advice.get(word);
  return text === undefined ? '' : `(${text})\n`;
}

/** Names that may stand in place of the word: subcommands, or options. */
function namesAt(command: Command, isOption: boolean): string[] {
  if (isOption) return command.options.flatMap(({ long }) => (long === undefined || long === null ? [] : [long]));
  const visible = command.createHelp().visibleCommands(command);
  return visible.map((one) => one.name());
}

/** The message of commander about an unknown command or option, with a suggestion. */
export function withSuggestion(command: Command, message: string): string {
  const [, kind, word = ''] = /^error: unknown (command|option) '(-[^'=]*|[^']*)/.exec(message) ?? [];
  return kind === undefined ? message : `${message}${suggestionFor(word, namesAt(command, kind === 'option'))}`;
}
