/** The words after `host-agent`: which command an operator typed, and its options. */
import { parseArgs } from 'node:util';
import { messageOf } from '../../lib/error-message.ts';
import { httpUrlForm, isHttpUrl } from '../../lib/config.ts';

export const usage = `usage: node dist/programs/host-agent.js [COMMAND]

Without a command: runs the agent of this host until SIGTERM. Commands:

  join [--token TOKEN | --token-file FILE] [--url URL]
      enrols this host and ends; the agent then starts without a token. FILE may be -, for
      standard input: an argument is seen by every user of the machine. Without either, the token
      is that of LONGSHORE_JOIN_TOKEN or LONGSHORE_JOIN_TOKEN_FILE. URL replaces LONGSHORE_URL.
      A host that is enrolled stays so, and the token remains unused.
  doctor [--json]
      says what is wrong with this host, and what to do. Changes nothing, and works beside a
      running agent. Exit code 1: something fails.
  help

Settings come from the environment; give every command the agent's own:
  node --env-file=/etc/longshore/host-agent.env dist/programs/host-agent.js doctor
docs/configuration.md has them all.`;

export type TokenSource =
  | { readonly kind: 'argument'; readonly token: string }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'stdin' }
  /** The settings of the agent. */
  | { readonly kind: 'settings' };

export type AgentCommand =
  | { readonly kind: 'run' }
  | { readonly kind: 'help' }
  | { readonly kind: 'join'; readonly token: TokenSource; readonly url: string | undefined }
  | { readonly kind: 'doctor'; readonly asJson: boolean }
  | { readonly kind: 'wrong'; readonly message: string };

const wrong = (message: string): AgentCommand => ({ kind: 'wrong', message });

export function parseCommand(args: readonly string[]): AgentCommand {
  const [word, ...rest] = args;
  if (word === undefined) return { kind: 'run' };
  if (args.includes('--help') || args.includes('-h')) return { kind: 'help' };
  try {
    switch (word) {
      case 'help':
        return rest.length === 0 ? { kind: 'help' } : wrong(`help takes no argument; remove ${rest.join(' ')}`);
      case 'join':
        return parseJoin(rest);
      case 'doctor': {
        const { values } = parseArgs({ args: rest, options: { json: { type: 'boolean' } } });
        return { kind: 'doctor', asJson: values.json === true };
      }
      default:
        return wrong(`there is no command ${word}`);
    }
  } catch (error) {
    return wrong(messageOf(error));
  }
}

function parseJoin(args: string[]): AgentCommand {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({ args, options: { token: text, 'token-file': text, url: text } });
  const { token, 'token-file': path, url } = values;
  if (token !== undefined && path !== undefined) return wrong('join takes --token or --token-file, not both');
  if (token === '' || path === '') return wrong('the token is empty');
  if (url !== undefined && !isHttpUrl(url)) return wrong(`--url must be ${httpUrlForm}`);
  return { kind: 'join', token: sourceOf(token, path), url };
}

function sourceOf(token: string | undefined, path: string | undefined): TokenSource {
  if (token !== undefined) return { kind: 'argument', token };
  if (path === undefined) return { kind: 'settings' };
  return path === '-' ? { kind: 'stdin' } : { kind: 'file', path };
}
