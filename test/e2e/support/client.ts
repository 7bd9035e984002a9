/** A tenant or an operator, as a client of the HTTP API. */
import type { prepareTokenIssuer } from '../../../dev/tokens.ts';
import type { Container, ContainerStatusView } from '../../../schemas/api/container.ts';
import { holdToDocument, type Answered } from '../../support/http/api-answers.ts';

export interface Reply<T = unknown> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: T;
}

export type Client = Awaited<ReturnType<typeof clientOf>>;

export type Issuer = Awaited<ReturnType<typeof prepareTokenIssuer>>;

const compute = '/api/v2/compute';

/** Longer than the deadline of any route; routes that make keys have a minute. */
const callDeadlineMs = 90_000;

/** Accepts the answers of a gateway of another release, whose document differs. */
export const anyAnswer = (): void => {};

/** A client whose every answer is as the OpenAPI document says, or its test fails. */
export async function clientOf(baseUrl: string, token: string, hold: (answer: Answered) => void = holdToDocument) {
  const call = async <T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(baseUrl + path, {
      method,
      signal: AbortSignal.timeout(callDeadlineMs),
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    hold({ method, path, status: response.status, headers: response.headers, text });
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    const reply: Reply<T> = {
      status: response.status,
      headers: response.headers,
      text,
      body: (isJson && text !== '' ? JSON.parse(text) : undefined) as T,
    };
    return reply;
  };
  const id = (container: { id: string }): string => `${compute}/${container.id}`;
  const create = async (body: object, headers?: Record<string, string>) =>
    call<{ data: Container }>('POST', compute, body, headers);
  const wait = async (container: { id: string }, status: string, timeoutS = 120) =>
    call<{ data: ContainerStatusView }>('GET', `${id(container)}/wait?status=${status}&timeout=${timeoutS}`);
  return {
    token,
    call,
    create,
    /** Creates the containers one by one, then waits until all of them run. */
    createRunning: async (bodies: readonly object[]): Promise<Container[]> => {
      const made: Container[] = [];
      for (const body of bodies) made.push((await create(body)).body.data);
      for (const container of made) {
        const { status, text } = await wait(container, 'running');
        if (status !== 200) throw new Error(`${container.name} does not run: ${status} ${text}`);
      }
      return made;
    },
    get: async (container: { id: string }) => call<{ data: Container }>('GET', id(container)),
    status: async (container: { id: string }) => call<{ data: ContainerStatusView }>('GET', `${id(container)}/status`),
    start: async (container: { id: string }) => call<{ data: Container }>('POST', `${id(container)}/start`),
    stop: async (container: { id: string }) => call<{ data: Container }>('POST', `${id(container)}/stop`),
    remove: async (container: { id: string }) => call<{ data: Container }>('DELETE', id(container)),
    wait,
    list: async () => call<{ data: Container[] }>('GET', compute),
  };
}

export const clientFor = async (
  baseUrl: string,
  issuer: Issuer,
  tenant: string,
  scope?: string,
  hold?: (answer: Answered) => void,
): Promise<Client> =>
  clientOf(
    baseUrl,
    await issuer.mint({
      tenant,
      subject: `${tenant}-user`,
      lifetimeS: 3600,
      ...(scope === undefined ? {} : { scope }),
    }),
    hold,
  );
