/** `login`, `logout`, `whoami` and `profile`. */
import type { Command } from 'commander';
import { decodeJwt } from 'jose/jwt/decode';
import { createApi, dataOf } from '../client/api.ts';
import { ApiError } from '../client/errors.ts';
import { action, displayOf, type GlobalOptions, type Terminal } from '../context.ts';
import { NoProfile, notToken, profilePath, readProfiles, serverIn, variableOf, writeProfiles } from '../profiles.ts';
import { Refused } from '../terminal/errors.ts';
import { endSession, signInByDevice } from './device.ts';
import { askHidden, readInput } from '../terminal/input.ts';
import { listing, showList } from '../terminal/list.ts';

const nameOf = (server: string): string => new URL(server).host;

/** Claims of a token; only the server knows whether it is valid. */
function claimsIn(token: string): Readonly<Record<string, unknown>> {
  try {
    return decodeJwt(token);
  } catch {
    throw notToken('that');
  }
}

/** Checks that the server accepts the token. One without a tenant's scopes may be an operator's. */
async function checkToken(server: string, token: string, signal: AbortSignal): Promise<void> {
  const api = createApi({ server, token, signal });
  try {
    await dataOf(api.GET('/api/v2/compute/quota'));
  } catch (error) {
    if (error instanceof ApiError && error.code === 'forbidden') return;
    if (error instanceof ApiError && error.status === 401)
      throw new Refused(`${server} refuses the token; it may have expired`);
    throw error;
  }
}

/** With `--tenant`, or at a terminal, by a sign-in in a browser where the server has one. */
async function tokenFrom(terminal: Terminal, server: string, tenant: string | undefined): Promise<string> {
  const { stdin, env } = terminal;
  const given = variableOf(env, 'LONGSHORE_TOKEN')?.trim();
  if (given !== undefined) return given;
  if (!stdin.isTTY && tenant === undefined) return (await readInput(terminal)).toString().trim();
  const token = await signInByDevice(terminal, server, tenant);
  if (token !== undefined) return token;
  if (!stdin.isTTY) throw new Refused(`${server} has no sign-in in a browser: give a token, without --tenant`);
  const where = 'Paste a token from its operator (of "npm start": in .longshore/dev.json).';
  terminal.stderr.write(`${server} has no sign-in in a browser. ${where}\n`);
  return askHidden('Token: ');
}

interface LoginOptions extends GlobalOptions {
  readonly tenant?: string;
}

async function login(terminal: Terminal, options: LoginOptions): Promise<void> {
  const server = serverIn(options.server ?? '');
  const token = await tokenFrom(terminal, server, options.tenant);
  if (token === '') throw new Refused('no token came: give one at the question, or on standard input');
  claimsIn(token);
  await checkToken(server, token, terminal.signal);
  const path = profilePath(terminal.env);
  const name = options.profile ?? nameOf(server);
  const { profiles } = readProfiles(path);
  writeProfiles(path, { current: name, profiles: { ...profiles, [name]: { server, token } } });
  terminal.stdout.write(`Signed in to ${server}, as profile "${name}" (${path}).\n`);
}

export function addProfiles(program: Command, terminal: Terminal): void {
  const path = (): string => profilePath(terminal.env);
  program
    .command('login')
    .description('Sign in to a server, in a browser or with a token from standard input or a prompt')
    .requiredOption('--server <url>', 'URL of the server, such as https://longshore.example.com')
    .option('--profile <name>', 'Name to store the profile under (default: the name of the server)')
    .option('--tenant <name>', 'Tenant to sign in to in the browser')
    .action(async (_options: unknown, command: Command) => {
      await login(terminal, command.optsWithGlobals<LoginOptions>());
    });
  program
    .command('logout')
    .description('Sign out of the current profile, and remove its token')
    .action(async (_options: unknown, command: Command) => {
      const file = readProfiles(path());
      const name = command.optsWithGlobals<GlobalOptions>().profile ?? file.current;
      const profile = name === null ? undefined : file.profiles[name];
      if (name === null || profile === undefined) throw new Refused('nobody is signed in');
      const isEnded = await endSession(terminal, { ...profile, tokenId: claimsIn(profile.token)['jti'] });
      const profiles = Object.fromEntries(Object.entries(file.profiles).filter(([one]) => one !== name));
      writeProfiles(path(), { current: file.current === name ? null : file.current, profiles });
      terminal.stdout.write(
        isEnded
          ? `Signed out of "${name}".\n`
          : `The token of "${name}" is forgotten here. It is valid until it ends or is revoked.\n`,
      );
      if (variableOf(terminal.env, 'LONGSHORE_TOKEN') !== undefined)
        terminal.stderr.write('Commands go on with the token in LONGSHORE_TOKEN: unset it.\n');
    });
  program
    .command('whoami')
    .description('Show the server, tenant and scopes of the current token')
    .action(
      action(terminal, async ({ server, token, show, terminal: { signal } }) => {
        await checkToken(server, token, signal);
        const claims = claimsIn(token);
        const expires_at = claims['exp'] === undefined ? null : new Date(Number(claims['exp']) * 1000).toISOString();
        const { tenant_id: tenant = null, sub: subject = null, scope = null } = claims;
        const value = { server, tenant, subject, scope, expires_at };
        const rows = Object.entries(value).map(([name, one]) => [
          name.replaceAll('_', ' '),
          one === null ? (name === 'scope' ? 'everything of the tenant' : '-') : String(one),
        ]);
        show(value, rows.map(([name = '', one = '']) => `${name.padEnd(12)}${one}`).join('\n'));
      }),
    );
  const profile = program.command('profile').description('Manage the servers that you are signed in to');
  listing(profile.command('ls').description('List profiles')).action(async (_options: unknown, command: Command) => {
    const { current, profiles } = readProfiles(path());
    showList(await displayOf(command, terminal), {
      items: Object.entries(profiles).map(([name, { server }]) => ({ name, server, current: name === current })),
      columns: {
        '': (one) => (one.current ? '*' : ''),
        name: ({ name }) => name,
        server: ({ server }) => server,
      },
      nameOf: ({ name }) => name,
      empty: 'There are no profiles: sign in with "longshore login --server URL".',
    });
  });
  const named = (name: string): ReturnType<typeof readProfiles> => {
    const file = readProfiles(path());
    if (file.profiles[name] === undefined) throw new NoProfile(name);
    return file;
  };
  profile
    .command('use <name>')
    .description('Select the profile that commands use')
    .action((name: string) => {
      writeProfiles(path(), { ...named(name), current: name });
    });
  profile
    .command('rm <name>')
    .description('Remove a profile and its token')
    .action((name: string) => {
      const { current, profiles } = named(name);
      const left = Object.fromEntries(Object.entries(profiles).filter(([one]) => one !== name));
      writeProfiles(path(), { current: current === name ? null : current, profiles: left });
    });
}
