/**
 * Every bound of the system: sizes, counts and waits, one file for each subject. A number that is
 * not here has no business in a queue.
 */
import { agent } from './limits/agent.ts';
import { api } from './limits/api.ts';
import { auth } from './limits/auth.ts';
import { budgets } from './limits/budgets.ts';
import { events } from './limits/events.ts';
import { hosts } from './limits/hosts.ts';
import { http } from './limits/http.ts';
import { logs } from './limits/logs.ts';
import { members } from './limits/members.ts';
import { nats } from './limits/nats.ts';
import { operations } from './limits/operations.ts';
import { partition } from './limits/partition.ts';
import { programs } from './limits/programs.ts';
import { rpc } from './limits/rpc.ts';
import { scrub } from './limits/scrub.ts';
import { streams } from './limits/streams.ts';
import { vpn } from './limits/vpn.ts';

export { defaultCaps, defaultHostCeiling } from './limits/api.ts';

export const limits = {
  ...http,
  ...auth,
  ...streams,
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
  ...budgets,
  ...vpn,
  ...operations,
  ...programs,
} as const;
