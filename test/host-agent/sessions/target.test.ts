/** The container of a session, by what is wanted here and what the engine has. */
import t from 'tap';
import { targetOf } from '../../../host-agent/sessions/target.ts';
import { labels } from '../../../host-agent/docker/ownership.ts';
import type { Inspection } from '../../../host-agent/docker/answers.ts';
import type { Wanted } from '../../../host-agent/desired/wanted.ts';
import type { SessionAbout } from '../../../schemas/wire/session.ts';
import { containerId, tenantId } from '../../actors/support.ts';

const id = containerId();
const about: SessionAbout = { tenant: tenantId('acme'), id, placement: 3 };

const wantedOf = (tenant = 'acme', placement = 3): Wanted =>
  ({ want: 'running', container: { tenant, id, placement }, spec: 's', admitted: true }) as unknown as Wanted;

interface Copy {
  readonly dockerId: string;
  readonly tenant?: string;
  readonly placement?: number;
  readonly status?: string;
  readonly spec?: string;
}

const engineWith = (...copies: readonly Copy[]) => ({
  idsOf: () => Promise.resolve(copies.map(({ dockerId }) => dockerId)),
  endOf: () => undefined,
  inspect: (dockerId: string) => {
    const {
      tenant = 'acme',
      placement = 3,
      status = 'running',
      spec = 's',
    } = copies.find((copy) => copy.dockerId === dockerId) ?? {};
    const inspection = {
      Id: dockerId,
      Config: {
        Labels: {
          [labels.tenant]: tenant,
          [labels.container]: id,
          [labels.placement]: String(placement),
          [labels.spec]: spec,
        },
      },
      State: { Status: status, StartedAt: '2026-01-01T00:00:00Z', FinishedAt: '2026-01-01T00:00:00Z', ExitCode: 0 },
      NetworkSettings: { Networks: { bridge: { IPAddress: '10.0.0.2' } }, Ports: {} },
    };
    return Promise.resolve(inspection as unknown as Inspection);
  },
});

t.test('the copy that runs, as it is wanted', async (t) => {
  t.match(await targetOf(engineWith({ dockerId: 'a' }), wantedOf(), about), { dockerId: 'a', ip: '10.0.0.2' });
  const updating = engineWith({ dockerId: 'old', spec: 'o' }, { dockerId: 'new', status: 'created' });
  t.match(await targetOf(updating, wantedOf(), about), { dockerId: 'old' }, 'of an update, the one that runs');
  const both = engineWith({ dockerId: 'old', spec: 'o' }, { dockerId: 'new' });
  t.match(await targetOf(both, wantedOf(), about), { dockerId: 'new' }, 'or the new one');
});

t.test('none of another tenant or placement, and none that does not run', async (t) => {
  const gone = { reason: 'not_running' };
  const one = engineWith({ dockerId: 'a' });
  t.match(await targetOf(one, wantedOf('rival'), about), gone, 'wanted for another tenant');
  t.match(await targetOf(one, wantedOf('acme', 4), about), gone, 'placed here again');
  t.match(await targetOf(one, { want: 'nothing' }, about), gone, 'not wanted here');
  t.match(await targetOf(engineWith({ dockerId: 'a', tenant: 'rival' }), wantedOf(), about), gone, 'of another tenant');
  t.match(await targetOf(engineWith({ dockerId: 'a', placement: 2 }), wantedOf(), about), gone, 'of another placement');
  t.match(await targetOf(engineWith({ dockerId: 'a', status: 'exited' }), wantedOf(), about), gone, 'ended');
  t.match(await targetOf(engineWith({ dockerId: 'a', status: 'paused' }), wantedOf(), about), gone, 'paused');
  t.match(await targetOf(engineWith(), wantedOf(), about), gone);
});
