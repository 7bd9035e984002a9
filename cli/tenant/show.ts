/** `inspect`, `describe` and `port`: one container. */
import type { Command } from 'commander';
import { limits } from '../../schemas/limits.ts';
import { oneLine } from '../../schemas/visible.ts';
import { bodyOf, dataOf, type Schemas } from '../client/api.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { portNumber } from '../terminal/arguments.ts';
import { Refused } from '../terminal/errors.ts';
import { paintOf } from '../terminal/colours.ts';
import { listing, showing, showList } from '../terminal/list.ts';
import { joined, type Text } from '../terminal/output.ts';
import { agoText, imageText } from '../terminal/table.ts';
import { isUnderWay } from './done.ts';
import { findContainer } from './find.ts';
import { eventText } from './past.ts';
import { statusOf } from './progress.ts';
import { stateText } from './state.ts';
import { storedPolicy, storedUses } from './uses.ts';

/** Events that `describe` shows. */
const cliDescribedEvents = 8;

async function found({ api }: Context, id: string) {
  const params = { path: { id } };
  const container = await dataOf(api.GET('/api/v2/compute/{id}', { params }));
  const status = await dataOf(api.GET('/api/v2/compute/{id}/status', { params }));
  const policy = await storedPolicy({ api }, id);
  const secrets = await storedUses({ api }, id);
  const uses = [...Object.values(secrets.env), ...Object.values(secrets.files).map(({ secret }) => secret)];
  // A token may see no list of secrets.
  const listed = uses.length === 0 ? [] : await dataOf(api.GET('/api/v2/compute/secrets')).catch(() => []);
  const behind = listed.flatMap((one) => (one.behind?.includes(id) === true ? [one.name] : []));
  const { process } = await dataOf(api.GET('/api/v2/containers/{id}/spec', { params }));
  const late = behind.length === 0 ? {} : { secrets_behind: behind };
  return { container, status, policy, secrets, ...late, process };
}

async function inspect(context: Context, name: string): Promise<void> {
  const value = await found(context, (await findContainer(context, name)).id);
  context.show(value, JSON.stringify(value, null, 2));
}

type Found = Awaited<ReturnType<typeof found>>;
type Health = Schemas['Policy']['health'];

function checkText(health: Health): string {
  if (health === null) return 'check of the image, if it has one';
  if ('none' in health) return 'no check';
  const { http, tcp, command, interval } = health;
  const what =
    http !== undefined
      ? `http ${http.port}${http.path}`
      : tcp !== undefined
        ? `tcp ${tcp.port}`
        : `command ${(command ?? []).join(' ')}`;
  return `${what}, every ${interval} s`;
}

function healthText({ status: { status, reason }, policy: { health } }: Found): string {
  if (reason === 'unhealthy') return `unhealthy: ${checkText(health)}`;
  const isChecked = health !== null && !('none' in health);
  return isChecked && status === 'running' ? `healthy: ${checkText(health)}` : checkText(health);
}

function updateText({ status: { update } }: Found, nowMs: number): string {
  if (update === undefined) return 'none';
  const { phase, reason, message, at, unmoved } = update;
  if (unmoved === true) return `its tag had not moved, ${agoText(at, nowMs)} ago`;
  const why = reason === null ? '' : `: ${reason}${message === null ? '' : ` (${message})`}`;
  return `${phase}${why}, ${isUnderWay({ update }) ? 'for ' : ''}${agoText(at, nowMs)}${isUnderWay({ update }) ? '' : ' ago'}`;
}

function networkText({ status: { network } }: Found): string {
  if (network === undefined) return '';
  if (network === null) return 'none';
  const { ipv6, names, state, message } = network;
  const where = [names[0] ?? [], ipv6].flat().join(', ');
  return state === 'ready' ? where : `${where} (not there: ${message ?? state})`;
}

const pairsText = (pairs: Readonly<Record<string, string>>): string =>
  Object.entries(pairs)
    .map(([key, value]) => (value === '' ? key : `${key}=${value}`))
    .join(', ');

/** Facts about a container, by their names. An empty text if the container has none. */
function factsOf(one: Found, nowMs: number): readonly (readonly [name: string, text: string])[] {
  const { container, status: view, policy, secrets, process } = one;
  const { reason, message, exit_code, started_at, next_retry_at } = view;
  const uses = [...Object.keys(secrets.env), ...Object.keys(secrets.files)];
  return [
    ['name', container.name],
    ['id', container.id],
    ['project', view.project ?? ''],
    ['labels', pairsText(view.labels ?? {})],
    ['image', imageText(container)],
    [
      'digest',
      view.image === undefined ? '' : `${view.image.digest}, looked up ${agoText(view.image.resolved_at, nowMs)} ago`,
    ],
    ['command', [...(process.entrypoint ?? []), ...(process.command ?? [])].join(' ')],
    ['status', stateText({ container, status: view })],
    ['reason', reason === null ? '' : `${reason}${message === null ? '' : `: ${message}`}`],
    ['exit code', exit_code === null ? '' : String(exit_code)],
    ['started', started_at === null ? '' : `${agoText(started_at, nowMs)} ago, ${started_at}`],
    ['network', networkText(one)],
    ['restarts', `${view.restart_count}${next_retry_at === null ? '' : `, next attempt at ${next_retry_at}`}`],
    ['restart', policy.restart],
    ['health', healthText(one)],
    ['host', container.host_key ?? 'none yet'],
    [
      'ports',
      view.addresses.map(({ port, address }) => `${address}->${port}`).join(', ') || container.ports.join(', '),
    ],
    ['limits', `${container.cpu_limit} cores, ${container.mem_limit}`],
    ['environment', Object.keys(container.env).join(', ')],
    ['secrets', uses.join(', ')],
    [
      'staged',
      one.secrets_behind === undefined ? '' : `a start or an update brings in ${one.secrets_behind.join(', ')}`,
    ],
    ['last update', updateText(one, nowMs)],
  ];
}

async function describe(context: Context, name: string): Promise<void> {
  const { api, terminal } = context;
  const { id } = await findContainer(context, name);
  const one = await found(context, id);
  const query = { limit: Math.min(cliDescribedEvents, limits.eventsMax) };
  const asked = api.GET('/api/v2/compute/{id}/events', { params: { path: { id }, query } });
  const body = (await bodyOf(asked)) as { readonly data: readonly Schemas['Event'][] };
  const facts = factsOf(one, terminal.nowMs()).filter(([, text]) => text !== '');
  const width = Math.max(...facts.map(([fact]) => fact.length)) + 2;
  const paint = paintOf(context);
  const lines = facts.map(([fact, text]): Text => {
    const shown = oneLine(text);
    const title = `${fact[0]?.toUpperCase()}${fact.slice(1)}:`;
    return joined([title.padEnd(width + 1), fact === 'status' ? paint(shown) : shown]);
  });
  const events = body.data.length === 0 ? [] : ['Events:', ...body.data.map((event) => `  ${eventText(event)}`)];
  context.show({ ...one, events: body.data }, joined([...lines, ...events], '\n'));
}

async function port(context: Context, name: string, number: number | undefined): Promise<void> {
  const container = await findContainer(context, name);
  const { addresses, status } = await statusOf(context, container.id);
  const named = addresses.filter((one) => number === undefined || one.port.split('/')[0] === String(number));
  const published = container.ports.map((one) => (typeof one === 'number' ? `${one}/tcp` : one));
  if (named.length === 0) throw new Refused(noAddress(container.name, status, published, number));
  // As in docker: the address alone, for scripts.
  const display = number === undefined || context.isJson ? context : { ...context, format: 'name' as const };
  showList(display, {
    items: named,
    columns: { port: (one) => one.port, address: ({ address }) => address },
    nameOf: ({ address }) => address,
    empty: '',
  });
}

function noAddress(name: string, status: string, published: readonly string[], number: number | undefined): string {
  if (published.length === 0) return `${name} publishes no port: "longshore update ${name} --port PORT" publishes one`;
  if (number !== undefined && !published.some((one) => one.split('/')[0] === String(number)))
    return `${name} does not publish ${number}: it publishes ${published.join(', ')}`;
  return `${name} is ${status}: its ports have addresses while it runs`;
}

export function addShow(program: Command, terminal: Terminal): void {
  const named = (name: string, description: string): Command => showing(program.command(name).description(description));
  named('inspect <container>', 'Show a container, its runs, process, policy and secrets, as JSON').action(
    action<[string]>(terminal, inspect),
  );
  named('describe <container>', 'Show a container and its newest events').action(action<[string]>(terminal, describe));
  listing(program.command('port <container>').description('Show the addresses of the ports of a container'))
    .argument('[port]', 'Port of the container, such as 8080', portNumber)
    .action(action<[string, number | undefined]>(terminal, port));
}
