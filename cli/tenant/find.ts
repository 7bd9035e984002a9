/** The container that a person means: by its id, its name, or the beginning of its id. */
import { isContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { Context } from '../context.ts';
import { dataOf, type Schemas } from '../client/api.ts';
import { ApiError } from '../client/errors.ts';
import { allOf } from '../client/pages.ts';
import { Refused } from '../terminal/errors.ts';

export type Container = Schemas['Container'];

export const containersOf = ({ api }: Pick<Context, 'api'>): Promise<Container[]> =>
  allOf((query) => api.GET('/api/v2/compute', { params: { query } }));

/** There is no such container. */
export class NotFound extends Refused {
  constructor(name: string) {
    super(`there is no container "${name}": "longshore ps" shows which there are`);
  }
}

/** @throws Refused if there is none, or several */
export async function findContainer(context: Pick<Context, 'api'>, name: string): Promise<Container> {
  if (isContainerId(name)) {
    try {
      return await dataOf(context.api.GET('/api/v2/compute/{id}', { params: { path: { id: name } } }));
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) throw new NotFound(name);
      throw error;
    }
  }
  const all = await containersOf(context);
  const named = all.find((one) => one.name === name);
  if (named !== undefined) return named;
  const begun = name.length < limits.cliPrefixChars ? [] : all.filter(({ id }) => id.startsWith(name));
  if (begun.length > 1) throw new Refused(`several ids begin with "${name}": ${begun.map(({ id }) => id).join(', ')}`);
  const [only] = begun;
  if (only === undefined) throw new NotFound(name);
  return only;
}
