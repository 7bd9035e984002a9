/**
 * Bounds of the system: sizes, counts and waits, one file for each subject. A number that one file
 * uses may stand there, unless the API or the documentation names it.
 */
import { agent } from './limits/agent.ts';
import { api } from './limits/api.ts';
import { audit } from './limits/audit.ts';
import { auth } from './limits/gateway/auth.ts';
import { cli } from './limits/cli.ts';
import { budgets } from './limits/actors/budgets.ts';
import { events } from './limits/actors/events.ts';
import { hosts } from './limits/hosts.ts';
import { http } from './limits/gateway/http.ts';
import { logs } from './limits/logs.ts';
import { members } from './limits/actors/members.ts';
import { nats } from './limits/nats.ts';
import { operations } from './limits/actors/operations.ts';
import { partition } from './limits/actors/partition.ts';
import { programs } from './limits/programs.ts';
import { rpc } from './limits/rpc.ts';
import { scrub } from './limits/actors/scrub.ts';
import { sessions } from './limits/sessions.ts';
import { secrets } from './limits/gateway/secrets.ts';
import { signIn } from './limits/gateway/sign-in.ts';
import { streams } from './limits/gateway/streams.ts';
import { usage } from './limits/usage.ts';
import { vpn } from './limits/gateway/vpn.ts';

export { defaultCaps, defaultHostCeiling } from './limits/api.ts';

export const limits = {
  ...http,
  ...auth,
  ...streams,
  ...secrets,
  ...signIn,
  ...api,
  ...rpc,
  ...nats,
  ...members,
  ...partition,
  ...scrub,
  ...hosts,
  ...agent,
  ...logs,
  ...events,
  ...audit,
  ...budgets,
  ...usage,
  ...vpn,
  ...operations,
  ...programs,
  ...sessions,
  ...cli,
} as const;
