/**
 * Common parts of programs of tenants: the typed client, made from the OpenAPI document, a tenant
 * of their own, and images whose containers run a script.
 */
import type { Test } from 'tap';
import { createApi, dataOf, writtenOf, type Api, type Schemas, type Written } from '../../../cli/client/api.ts';
import { steady } from '../../host-agent/support/rig.ts';
import { imageRunning } from '../support/images.ts';
import { sharedStack } from '../support/stack.ts';

export type Outcome = Schemas['WaitedStatus']['outcome'];
type Image = { readonly registry: string; readonly repository: string; readonly tag: string };

export interface Ground {
  readonly api: Api;
  readonly token: string;
  readonly baseUrl: string;
  readonly tenant: string;
  /** An image that runs until it is stopped. */
  readonly image: Image;
  imageOf(script: string): Promise<Image>;
}

export const small = { cpu_limit: '0.1', mem_limit: '32m' };

export async function groundOf(t: Test, name: string, scope?: string): Promise<Ground> {
  const rig = await sharedStack(t);
  const tenant = rig.tenant(name);
  const { token } = await rig.client(tenant, scope);
  const imageOf = (script: string): Promise<Image> => imageRunning(rig, script);
  const api = createApi({ server: rig.baseUrl, token });
  return { api, token, baseUrl: rig.baseUrl, tenant, image: await imageOf(steady), imageOf };
}

/** The document's type says that a POST with `dry_run` answers otherwise. */
export const create = (api: Api, body: Schemas['ContainerSpecPut']): Promise<Written<Schemas['Container']>> =>
  writtenOf(
    api.POST('/api/v2/containers', { body }) as Promise<{ data?: { data: Schemas['Container'] }; response: Response }>,
  );

/** Status after a write has settled: one request, answered when the outcome is known. */
export const settled = (api: Api, id: string, generation: number | undefined): Promise<Schemas['WaitedStatus']> =>
  dataOf(
    api.GET('/api/v2/compute/{id}/wait', {
      params: {
        path: { id },
        query: { until: 'settled', timeout: 120, ...(generation === undefined ? {} : { generation }) },
      },
    }),
  );

/** The only container of a name. */
export async function idOf(api: Api, name: string): Promise<string> {
  const [item] = await dataOf(api.GET('/api/v2/containers', { params: { query: { name: [name] } } }));
  if (item === undefined) throw new Error(`there is no container ${name}`);
  return item.container.id;
}
