import t from 'tap';
import { validateCreate } from '../../../gateway/validation/container.ts';

const warning = (body: object): string | undefined => {
  const valid = validateCreate({ name: 'web', ...body });
  return valid.ok ? valid.warning : 'refused';
};

t.test('a key that is ignored and close to one that counts is named', (t) => {
  for (const [key, name] of [
    ['repositry', 'repository'],
    ['cpulimit', 'cpu_limit'],
    ['cpu-limit', 'cpu_limit'],
    ['MEM_LIMIT', 'mem_limit'],
    ['hostkey', 'host_key'],
    ['tags', 'tag'],
    ['port', 'ports'],
    ['evn', undefined],
    ['Env', 'env'],
  ] as const) {
    const said = name === undefined ? undefined : `"${key}" is ignored: did you mean "${name}"?`;
    t.equal(warning({ [key]: 'x' }), said, key);
  }
  t.equal(
    warning({ tags: 1, port: 2 }),
    '"tags" is ignored: did you mean "tag"? "port" is ignored: did you mean "ports"?',
  );
  t.end();
});

t.test('other keys are ignored without a word', (t) => {
  const view = { id: 'x', tenant_id: 'x', status: 'running', pull_policy: 'never', inserted_at: 'x', updated_at: 'x' };
  t.equal(warning({}), undefined);
  t.equal(warning(view), undefined, 'a container as it was read');
  t.equal(warning({ labels: {}, image: 'x', 'tag\r\nset-cookie: x': 1, ['tag'.repeat(30)]: 1 }), undefined);
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`tag${at % 10}${'x'.repeat(at)}`, 1]));
  t.ok((warning(many) ?? '').length < 500);
  t.end();
});
