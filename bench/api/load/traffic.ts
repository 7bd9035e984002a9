/** Requests as bytes, made before the measurement, because a load generator should cost little. */
import { compute, image, type Declared, type System, type Tenant } from '../ground.ts';

export interface Traffic {
  /** Request heads; each request uses a random one. */
  readonly heads: readonly string[];
  /** The request body. Between the two parts comes a number of eight digits, new each time. */
  readonly body?: readonly [before: string, after: string];
}

export const numberDigits = 8;

const head = (system: System, line: string, { token }: Tenant, more: readonly string[] = []): string =>
  [`${line} HTTP/1.1`, `host: ${new URL(system.baseUrl).host}`, `authorization: Bearer ${token}`, ...more, '\r\n'].join(
    '\r\n',
  );

export const gets = (system: System, asks: readonly { readonly tenant: Tenant; readonly path: string }[]): Traffic => ({
  heads: asks.map(({ tenant, path }) => head(system, `GET ${path}`, tenant)),
});

export const reads = (system: System, declared: readonly Declared[]): Traffic =>
  gets(
    system,
    declared.map(({ tenant, id }) => ({ tenant, path: `${compute}/${id}` })),
  );

/** @param prefix begins the names and must be unique to this traffic */
export function creates(system: System, tenants: readonly Tenant[], prefix: string): Traffic {
  const marker = '#';
  const [before = '', after = ''] = JSON.stringify({ name: `${prefix}-${marker}`, ...image }).split(marker);
  const bytes = before.length + numberDigits + after.length;
  const headers = ['content-type: application/json', `content-length: ${bytes}`];
  return { heads: tenants.map((tenant) => head(system, `POST ${compute}`, tenant, headers)), body: [before, after] };
}
