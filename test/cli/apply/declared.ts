/** Declarations of files, and what exists of them, for tests of plans. */
import type { Wanted } from '../../../cli/apply/file/model.ts';
import { readText } from '../../../cli/apply/file/read.ts';
import type { Found, FoundContainer, Peer } from '../../../cli/apply/found.ts';

export const wantedIn = (file: object): Wanted => {
  const { wanted, faults } = readText('file.yml', JSON.stringify(file), { folder: '/', env: {} });
  if (wanted === undefined || faults.length > 0) throw new Error(faults.map(({ message }) => message).join('\n'));
  return wanted;
};

export const empty: Found = {
  containers: new Map(),
  strays: [],
  secrets: new Map(),
  registries: new Map(),
  peers: new Map(),
};

/** A container that runs as a file declares it. */
export function foundAs(wanted: Wanted, name: string, change: Partial<FoundContainer['status']> = {}): FoundContainer {
  const one = wanted.containers.find((container) => container.name === name);
  if (one === undefined) throw new Error(`${name} is not declared`);
  const { document, host = 'h1' } = one;
  const { labels, project } = document;
  const time = '2026-11-24T12:00:00.000Z';
  const id = `id-of-${name}`;
  const status: FoundContainer['status'] = {
    id,
    status: 'running',
    desired: 'running',
    generation: 1,
    host_key: host,
    observed_status: 'running',
    observed_at: time,
    reason: null,
    message: null,
    exit_code: null,
    restart_count: 0,
    next_retry_at: null,
    started_at: time,
    addresses: [],
    labels,
    project,
    ...change,
  };
  const desired = status.desired === 'stopped' ? 'stopped' : 'running';
  return { id, document: { ...document, host_key: host, desired }, etag: '"1"', status };
}

export const peer = (change: Partial<Peer> = {}): Peer => ({
  id: '01890000-0000-7000-8000-000000000001',
  tenant_id: 'acme',
  name: 'phone',
  network: 'office',
  state: 'active',
  enabled: true,
  expires_at: null,
  ipv4: '10.0.0.1',
  ipv6: null,
  routes: null,
  dns: null,
  public_key: 'key',
  certificate: { serial: '1', not_after: '2030-01-01T00:00:00Z' },
  tokens: [],
  last_handshake_at: null,
  rx_bytes: null,
  tx_bytes: null,
  endpoint: null,
  files_changed_at: '2026-11-24T12:00:00.000Z',
  problem: null,
  inserted_at: '2026-11-24T12:00:00.000Z',
  updated_at: '2026-11-24T12:00:00.000Z',
  ...change,
});
