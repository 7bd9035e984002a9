/** `secret`, `registry` and `token`. */
import { InvalidArgumentError, type Command } from 'commander';
import { keyScopePattern, keyScopes } from '../../schemas/scopes.ts';
import { dataOf, doneOf } from '../client/api.ts';
import { ApiError } from '../client/errors.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { endText, endTime, waiting, type WaitOptions } from '../terminal/arguments.ts';
import { Refused, WrongUsage } from '../terminal/errors.ts';
import { askHidden, readInput, readSource, withoutLastBreak } from '../terminal/input.ts';
import { listing, shortIds, showList } from '../terminal/list.ts';
import { agoText } from '../terminal/table.ts';
import { goalOf } from './done.ts';
import { NotFound, oneOf, overviewOf } from './find.ts';
import { keptText, untilRolled, type User } from './rolled.ts';
import { storedPolicy } from './uses.ts';

/** Text without the line break that a shell adds; other bytes as base64. */
export function secretBody(bytes: Buffer): { value: string; encoding?: 'base64' } {
  const text = bytes.toString('utf8');
  return Buffer.from(text).equals(bytes) && !text.includes('\0')
    ? { value: text }
    : { value: bytes.toString('base64'), encoding: 'base64' };
}

/** Never reads a secret from an argument: everybody on the machine sees those. */
async function secretFrom(terminal: Terminal, file: string | undefined, question: string): Promise<Buffer> {
  if (file !== undefined) return readSource(file, terminal);
  if (terminal.stdin.isTTY) return Buffer.from(await askHidden(question));
  return withoutLastBreak(await readInput(terminal));
}

/** @throws NotFound if the server knows no such thing */
async function thereIs(what: 'secret' | 'registry', name: string, asked: Promise<void>): Promise<void> {
  await asked.catch((error: unknown) => {
    throw error instanceof ApiError && error.status === 404 ? new NotFound(what, name) : error;
  });
}

interface SetOptions extends WaitOptions {
  readonly file?: string;
  readonly detach?: true;
  readonly stage?: true;
}

interface Users {
  readonly version: number;
  /** Ids of containers that keep an earlier value until they are started again, or updated. */
  readonly behind: readonly string[];
  /** Containers that run, or should. */
  readonly users: readonly User[];
}

/** Containers that use the secret, as they are before it changes. */
async function usersOf(context: Context, name: string): Promise<Users> {
  const all = await dataOf(context.api.GET('/api/v2/compute/secrets'));
  const { version = 0, used_by = [], behind = [] } = all.find((one) => one.name === name) ?? {};
  if (used_by.length === 0) return { version, behind, users: [] };
  const items = await overviewOf(context, { include: ['status'] });
  const users = items.flatMap(({ container: { id, name }, status }) =>
    used_by.includes(id) && status?.desired === 'running' ? [{ id, name, generation: status.generation }] : [],
  );
  return { version, behind, users };
}

/** Message about the containers that still run with an earlier value than a staged one. */
function stagedText(users: readonly User[], behind: readonly string[] = []): string {
  const names = users.filter(({ id }) => behind.includes(id)).map((user) => user.name);
  return names.length === 0
    ? 'no container runs with an earlier value'
    : `${names.join(', ')} still with the value before: "longshore restart ${names.join(' ')}" brings in this one`;
}

async function setSecret(context: Context, name: string, options: SetOptions): Promise<void> {
  const { api, terminal, tell, show } = context;
  const { file, detach, stable, timeout: seconds } = options;
  const body = secretBody(await secretFrom(terminal, file, `Value of ${name}: `));
  // A token may change secrets and see no containers.
  const before = await usersOf(context, name).catch((error: unknown): Users => {
    if (!(error instanceof ApiError) || error.code !== 'forbidden') throw error;
    return { version: 0, behind: [], users: [] };
  });
  const params = { path: { secret: name }, query: options.stage === true ? { stage: true } : {} };
  const set = await dataOf(api.PUT('/api/v2/compute/secrets/{secret}', { params, body }));
  // Unstaging the same value changes no version: containers that are behind count then.
  const isLate = ({ id }: User): boolean => set.version !== before.version || before.behind.includes(id);
  const isKept = ({ id }: User): boolean => set.behind?.includes(id) === true;
  const kept = set.staged === true ? [] : before.users.filter(isKept);
  const users = set.staged === true ? [] : before.users.filter((user) => isLate(user) && !isKept(user));
  if (set.staged === true) tell(stagedText(before.users, set.behind));
  if (kept.length > 0) tell(keptText(kept.map((user) => user.name).join(', '), name));
  if (users.length > 0) tell(`restarts ${users.map((user) => user.name).join(', ')}`);
  for (const user of detach === true ? [] : users) {
    const goal = goalOf(await storedPolicy(context, user.id), stable);
    const isRolled = await untilRolled(context, user, { secrets: [name], goal, seconds });
    if (!isRolled) tell(keptText(user.name, name));
  }
  show(set, `${set.name}, version ${set.version}`);
}

function addSecrets(program: Command, terminal: Terminal): void {
  const secret = program.command('secret').description('Manage secrets');
  listing(secret.command('ls').description('List secrets, without their values')).action(
    action(terminal, async (context) => {
      showList(context, {
        items: await dataOf(context.api.GET('/api/v2/compute/secrets')),
        columns: {
          name: ({ name }) => name,
          version: ({ version }) => String(version),
          age: ({ updated_at }) => agoText(updated_at, terminal.nowMs()),
          containers: ({ used_by, behind = [] }) =>
            `${used_by.length}${behind.length === 0 ? '' : `, ${behind.length} with an earlier value`}`,
        },
        nameOf: ({ name }) => name,
        empty: 'There are no secrets.',
      });
    }),
  );
  waiting(
    secret
      .command('set <name>')
      .description('Create or change a secret from standard input, a file or a prompt; restarts what uses it')
      .option('--file <path>', 'File with the value, byte for byte')
      .option('--stage', 'Store the value alone; containers take it with their next start or update')
      .option('-d, --detach', 'Return without waiting until the containers are up again'),
    'Longest wait for each container',
  ).action(action<[string, SetOptions]>(terminal, setSecret));
  secret
    .command('rm <name>')
    .description('Remove a secret that no container uses')
    .action(
      action<[string]>(terminal, async ({ api, show }, name) => {
        const asked = doneOf(api.DELETE('/api/v2/compute/secrets/{secret}', { params: { path: { secret: name } } }));
        await thereIs('secret', name, asked);
        show({ name }, name);
      }),
    );
}

function addRegistries(program: Command, terminal: Terminal): void {
  const registry = program.command('registry').description('Manage logins to private image registries');
  listing(registry.command('ls').description('List registry logins, without their passwords')).action(
    action(terminal, async (context) => {
      showList(context, {
        items: await dataOf(context.api.GET('/api/v2/compute/registries')),
        columns: {
          registry: ({ host }) => host,
          user: ({ username }) => username ?? '-',
          age: ({ updated_at }) => agoText(updated_at, terminal.nowMs()),
        },
        nameOf: ({ host }) => host,
        empty: 'There are no logins.',
      });
    }),
  );
  registry
    .command('login <registry>')
    .description('Store a registry login; reads the password from standard input, a file or a prompt')
    .requiredOption('-u, --username <name>', 'User name at the registry')
    .option('--password-file <path>', 'File with the password')
    .action(
      action<[string, { username: string; passwordFile?: string }]>(
        terminal,
        async ({ api, show }, host, { username, passwordFile }) => {
          if (host.includes('/'))
            throw new WrongUsage(`"${host}" is no registry: name its host, such as registry.example.com`);
          const bytes = withoutLastBreak(await secretFrom(terminal, passwordFile, `Password of ${username}: `));
          if (bytes.length === 0) throw new Refused('the password is empty');
          const params = { path: { registry: host } };
          const set = await dataOf(
            api.PUT('/api/v2/compute/registries/{registry}', {
              params,
              body: { username, password: bytes.toString() },
            }),
          );
          show(set, `${set.host} as ${set.username}`);
        },
      ),
    );
  registry
    .command('logout <registry>')
    .description('Remove a registry login')
    .action(
      action<[string]>(terminal, async ({ api, show }, host) => {
        const params = { path: { registry: host } };
        await thereIs('registry', host, doneOf(api.DELETE('/api/v2/compute/registries/{registry}', { params })));
        show({ host }, host);
      }),
    );
}

interface KeyOptions {
  readonly scope?: readonly string[];
  readonly expires?: string;
}

const scopesText = `${keyScopes.join(', ')} or network:<name>`;
const isScope = new RegExp(keyScopePattern);

/** Adds a `--scope` to the earlier ones. */
function scopesOf(scope: string, before: readonly string[] = []): readonly string[] {
  if (!isScope.test(scope)) throw new InvalidArgumentError(`Use ${scopesText}.`);
  return [...before, scope];
}

async function createKey(
  { api, show, tell }: Context,
  name: string,
  { scope = [], expires }: KeyOptions,
): Promise<void> {
  if (scope.length === 0) throw new WrongUsage(`--scope: name at least one of ${scopesText}`);
  const body = { name, scopes: [...scope], ...(expires === undefined ? {} : { expires_at: expires }) };
  const made = await dataOf(api.POST('/api/v2/keys', { body }));
  tell(`Token ${made.id} expires at ${made.expires_at ?? '-'}. It is shown only once:`);
  show(made, made.token);
}

function addKeys(program: Command, terminal: Terminal): void {
  const token = program.command('token').description('Manage API tokens');
  listing(token.command('ls').description('List API tokens')).action(
    action(terminal, async (context) => {
      const items = await dataOf(context.api.GET('/api/v2/keys'));
      const short = shortIds(items.map(({ id }) => id));
      showList(context, {
        items,
        columns: {
          name: ({ name }) => name ?? '-',
          id: ({ id }) => (context.format === 'wide' ? id : short(id)),
          scopes: ({ scopes }) => scopes?.join(',') ?? '-',
          expires: ({ expires_at }) => expires_at ?? '-',
          '': ({ revoked }) => (revoked ? 'revoked' : ''),
        },
        nameOf: ({ id, name }) => name ?? id,
        idOf: ({ id }) => id,
        empty: 'There are no API tokens.',
      });
    }),
  );
  token
    .command('create <name>')
    .description('Create an API token, and print it once')
    .option('-s, --scope <scope...>', `Permissions of the token: ${scopesText}`, scopesOf)
    .option(
      '--expires <time>',
      `${endText} (default: the latest that the server allows)`,
      endTime(() => terminal.nowMs()),
    )
    .action(action<[string, KeyOptions]>(terminal, createKey));
  token
    .command('rm <token>')
    .description('Revoke an API token, by its name or id')
    .action(
      action<[string]>(terminal, async ({ api, show }, given) => {
        const all = await dataOf(api.GET('/api/v2/keys'));
        const found = oneOf(
          all.map(({ id, name }) => ({ id, name: name ?? '' })),
          given,
        );
        if (found === undefined) throw new NotFound('token', given);
        await doneOf(api.DELETE('/api/v2/keys/{key_id}', { params: { path: { key_id: found.id } } }));
        show({ id: found.id }, found.id);
      }),
    );
}

export function addAccess(program: Command, terminal: Terminal): void {
  addSecrets(program, terminal);
  addRegistries(program, terminal);
  addKeys(program, terminal);
}
