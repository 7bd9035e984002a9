/**
 * One call of the Docker Engine API: the agreed API version in its path, the accepted statuses, its
 * answer decoded.
 */
import type { Duplex } from 'node:stream';
import { messageOf } from '../../../lib/error-message.ts';
import { limits } from '../../../schemas/limits.ts';
import { decode } from '../answers.ts';
import { EngineError } from '../errors.ts';
import { readWhole, type Call, type OpenReply, type Reply, type Transport } from '../transport.ts';

/**
 * Older engines lack what the agent relies on; newer ones still speak the newest version that the
 * agent was tested with.
 */
const oldestApi = '1.41';
const newestApi = '1.51';

export interface EngineClient {
  /** Agrees on an API version with the engine that answers now. @returns the engine's version */
  negotiate(deadlineMs: number): Promise<string>;
  /** The API version that was last agreed on. */
  api(): string | undefined;
  /** Rejects with the fault `refused` if the status is not among these. */
  ask(call: Call, accepted: readonly number[]): Promise<Reply>;
  post(name: string, path: string, accepted: readonly number[], deadlineMs?: number): Promise<Reply>;
  /** Returns an answer whose body is read as it arrives. */
  open(call: Call): Promise<OpenReply>;
  /** Raw bytes both ways. */
  hijack(call: Call): Promise<Duplex>;
}

export function createEngineClient(transport: Transport): EngineClient {
  let api: string | undefined;

  const agree = async (deadlineMs: number): Promise<{ readonly version: string; readonly api: string }> => {
    const name = 'version';
    const reply = await transport.call({ name, method: 'GET', path: '/version', deadlineMs });
    const { Version, ApiVersion, MinAPIVersion } = parse(name, decode.version, expect(name, reply, [200]));
    const agreed = compareApi(ApiVersion, newestApi) > 0 ? newestApi : ApiVersion;
    if (compareApi(agreed, oldestApi) < 0 || (MinAPIVersion !== undefined && compareApi(agreed, MinAPIVersion) < 0)) {
      const theirs = `API ${MinAPIVersion ?? '?'} to ${ApiVersion}`;
      const detail = `the engine speaks ${theirs}, the agent ${oldestApi} to ${newestApi}`;
      throw new EngineError(name, { kind: 'malformed' }, detail);
    }
    api = agreed;
    return { version: `docker ${Version}`, api: agreed };
  };
  const prefixed = async (call: Call): Promise<Call> => ({
    ...call,
    path: `/v${api ?? (await agree(limits.engineProbeMs)).api}${call.path}`,
  });
  const ask = async (call: Call, accepted: readonly number[]): Promise<Reply> =>
    expect(call.name, await transport.call(await prefixed(call)), accepted);

  return {
    negotiate: async (deadlineMs) => (await agree(deadlineMs)).version,
    api: () => api,
    ask,
    post: (name, path, accepted, deadlineMs) =>
      ask({ name, method: 'POST', path, ...(deadlineMs === undefined ? {} : { deadlineMs }) }, accepted),
    hijack: async (call) => {
      const reply = await transport.hijack?.(await prefixed(call));
      if (reply?.stream !== undefined) return reply.stream;
      throw refusal(call.name, reply?.status ?? 0, reply?.body ?? Buffer.from('this engine has no processes'));
    },
    open: async (call) => {
      const reply = await transport.open(await prefixed(call));
      if (reply.status === 200) return reply;
      throw refusal(call.name, reply.status, await readWhole(call.name, reply.stream));
    },
  };
}

/** `'1.9'` is older than `'1.41'`: the parts are numbers. */
export function compareApi(left: string, right: string): number {
  const [leftMajor = 0, leftMinor = 0] = left.split('.').map(Number);
  const [rightMajor = 0, rightMinor = 0] = right.split('.').map(Number);
  return leftMajor - rightMajor || leftMinor - rightMinor;
}

export function parse<T>(name: string, decoder: (bytes: Uint8Array) => T, reply: Pick<Reply, 'body'>): T {
  try {
    return decoder(reply.body);
  } catch (error) {
    const detail = messageOf(error);
    throw new EngineError(name, { kind: 'malformed' }, detail, error);
  }
}

export type Labels = Readonly<Record<string, string>>;

export const labelFilter = (labels: Labels, more: object = {}): string =>
  encodeURIComponent(
    JSON.stringify({ ...more, label: Object.entries(labels).map(([name, value]) => `${name}=${value}`) }),
  );

export const json = (value: object) => ({ type: 'application/json', bytes: Buffer.from(JSON.stringify(value)) });

function expect(name: string, reply: Reply, accepted: readonly number[]): Reply {
  if (accepted.includes(reply.status)) return reply;
  throw refusal(name, reply.status, reply.body);
}

function refusal(name: string, status: number, body: Buffer): EngineError {
  let detail = body.toString('utf8').slice(0, 300);
  try {
    detail = decode.failure(body).message;
  } catch {
    // Not the engine's JSON, but perhaps a proxy's page: the text is used as it is.
  }
  return new EngineError(name, { kind: 'refused', status }, detail || `status ${status}`);
}
