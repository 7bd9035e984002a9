/** Context of a command: server, token and outputs. */
import type { Command } from 'commander';
import { createApi, type Api } from './client/api.ts';
import { NoProfile, notToken, profilePath, readProfiles, serverIn, variableOf, type Profile } from './profiles.ts';
import { ApiError } from './client/errors.ts';
import { Refused, signInText } from './terminal/errors.ts';
import { joined, type Output, type Text } from './terminal/output.ts';

/** The process around the commands. */
export interface Terminal {
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Ctrl-C. */
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
}

/** Options of every command. */
export interface GlobalOptions {
  readonly profile?: string;
  readonly server?: string;
  readonly json?: boolean;
}

/** Forms in which a command prints what it found (docs/cli.md, "Output"). `--quiet` is `id`. */
const formats = ['table', 'wide', 'name', 'id', 'json', 'yaml'] as const;
type Format = (typeof formats)[number];

/** Options of commands that have formats (list.ts). */
interface FormatOptions extends GlobalOptions {
  /** A format, or the file of a command that writes one. */
  readonly output?: string;
  readonly quiet?: boolean;
}

/** Outputs of a command. */
export interface Display {
  readonly terminal: Terminal;
  readonly format: Format;
  /** True if a program reads the output. */
  readonly isJson: boolean;
  /** Prints the value for programs (`--json`, `-o yaml`), or the text for people. */
  show(value: unknown, text: Text): void;
  /** Prints a line for people, beside the output. */
  tell(text: Text): void;
}

export interface Context extends Display {
  readonly api: Api;
  readonly server: string;
  readonly token: string;
}

/** @throws Refused if it is not signed in. */
export function accessOf({ profile, server }: GlobalOptions, env: NodeJS.ProcessEnv): Profile {
  const path = profilePath(env);
  const { current, profiles } = readProfiles(path);
  const name = profile ?? current;
  const chosen = name === null ? undefined : profiles[name];
  if (profile !== undefined && chosen === undefined) throw new NoProfile(profile);
  const given = server ?? (profile === undefined ? variableOf(env, 'LONGSHORE_SERVER') : undefined);
  const at = given === undefined ? chosen?.server : serverIn(given);
  if (at === undefined) throw new Refused('no server is known: sign in with "longshore login --server URL"');
  // A token goes to the server that it was given for, and to no other.
  const ofShell = profile === undefined ? variableOf(env, 'LONGSHORE_TOKEN') : undefined;
  const token = (ofShell ?? (chosen?.server === at ? chosen.token : undefined))?.trim();
  if (token === undefined) throw new Refused(`no token for ${at}: sign in with "longshore login --server ${at}"`);
  // An error must not show the token, as the error of a header would.
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw notToken(ofShell === undefined ? `the token for ${at}` : 'LONGSHORE_TOKEN');
  }
  return { server: at, token };
}

function formatOf({ json, quiet, output }: FormatOptions): Format {
  if (json === true) return 'json';
  if (quiet === true) return 'id';
  return formats.find((one) => one === output) ?? 'table';
}

/** YAML is loaded only where it is asked for. */
export async function displayOf(command: Command, terminal: Terminal): Promise<Display> {
  const format = formatOf(command.optsWithGlobals<FormatOptions>());
  const toYaml = format === 'yaml' ? (await import('yaml')).stringify : undefined;
  const textOf = (value: unknown): string =>
    toYaml?.(value, { aliasDuplicateObjects: false }) ?? `${JSON.stringify(value, null, 2)}\n`;
  const isJson = format === 'json' || format === 'yaml';
  return {
    terminal,
    format,
    isJson,
    show: (value, text) => terminal.stdout.write(isJson ? textOf(value) : joined([text, '\n'])),
    tell: (text) => terminal.stderr.write(joined([text, '\n'])),
  };
}

async function contextOf(command: Command, terminal: Terminal): Promise<Context> {
  const { server, token } = accessOf(command.optsWithGlobals<GlobalOptions>(), terminal.env);
  const display = await displayOf(command, terminal);
  return {
    ...display,
    api: createApi({
      server,
      token,
      signal: terminal.signal,
      onPause: (why, ms) => {
        if (terminal.stderr.isTTY) display.tell(`${why}; again in ${Math.ceil(ms / 1000)} s`);
      },
    }),
    server,
    token,
  };
}

/**
 * Expiry of a token by its own claim, in ISO 8601; `undefined` if it has not passed. Only the
 * server knows whether the token is valid.
 */
function endedAt(token: string, nowMs: number): string | undefined {
  try {
    const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as {
      readonly exp?: unknown;
    };
    return typeof exp === 'number' && exp * 1000 <= nowMs ? new Date(exp * 1000).toISOString() : undefined;
  } catch {
    return undefined;
  }
}

/** The action of a command, with its context. */
export const action =
  <Args extends readonly unknown[]>(terminal: Terminal, run: (context: Context, ...args: Args) => Promise<void>) =>
  async (...given: unknown[]): Promise<void> => {
    const command = given.at(-1) as Command;
    const context = await contextOf(command, terminal);
    try {
      await run(context, ...(given.slice(0, -1) as unknown as Args));
    } catch (error) {
      const at =
        error instanceof ApiError && error.status === 401 ? endedAt(context.token, terminal.nowMs()) : undefined;
      if (at === undefined) throw error;
      throw new Refused(`the token for ${context.server} ended at ${at}\n${signInText}`);
    }
  };
