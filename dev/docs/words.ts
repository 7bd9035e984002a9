/**
 * Hand-written text of the generated tables in docs/. The types require an entry for each error,
 * status, reason and tool.
 */
import type { ContainerStatus, Reason } from '../../schemas/api/container.ts';
import type { ConflictReason, ErrorCode } from '../../schemas/errors.ts';
import type { ToolName } from '../fetch/tool-table.ts';

interface ErrorWords {
  readonly when: string;
  readonly client: string;
}

export const errorWords: Readonly<Record<ErrorCode, ErrorWords>> = {
  bad_request: {
    when: 'The body is not JSON in UTF-8, or did not arrive within 10 seconds, or the URL is longer than 8 KiB.',
    client: 'Fix the request; the same one is refused again.',
  },
  unauthenticated: {
    when: 'No credentials, or a token that is malformed, expired or revoked, has no tenant, is signed by an unknown key, or comes from another issuer or for another audience. The answer is the same for all of these. At enrolment: a join token that is wrong, used or expired. At the redemption of a one-time link: one that is wrong, used by another browser, or has ended. At a renewal: a key that is not the enrolled one of a host, or may not renew.',
    client:
      'Get a new token from the issuer. An agent needs a new join token from an operator. A person needs a new link.',
  },
  forbidden: {
    when: 'The token has scopes, and none of them opens the route, or it has none and the route is an operator’s (`detail.scope` names one that opens it). Or a request from another site would change something and carries a cookie.',
    client: 'Use a token with that scope, or send the token as `Authorization: Bearer`.',
  },
  over_quota: {
    when: 'The create or update would exceed a cap of the tenant, or of the tenant in the region. `dimension` is the first cap exceeded, `requested` the total that the request would reach, `max` the cap.',
    client: 'Delete containers (stopping them frees nothing), ask for less, or ask the operator for a higher cap.',
  },
  not_found: {
    when: 'There is no such path, container, tenant or host. Another tenant’s container looks like a missing one, as does an id that is not a UUID.',
    client: 'Check the id. After a delete, this answer confirms it.',
  },
  method_not_allowed: {
    when: 'The path does not support this method. The header `Allow` lists those that it does.',
    client: 'Use a method from `Allow`.',
  },
  conflict: {
    when: 'The present state does not allow it. `reason` says why: see [reasons of conflicts](#reasons-of-conflicts). `detail` has `max` with `too_many`, and `containers` with some of `in_use`.',
    client: 'Follow the table by `reason`.',
  },
  precondition_failed: {
    when: '`If-Match` names no ETag that the resource still has: somebody has changed what is declared since you read it, or it was never there. Or `If-None-Match` names one that it has. Nothing was executed.',
    client: 'Read it again, and decide whether your change still applies.',
  },
  too_large: {
    when: 'The body is larger than its route allows (16 KiB for most, 512 KiB for a container, 2 MiB for its document), has more than 8,192 keys and items, or came in more than 4,096 pieces; `message` says which of the latter two.',
    client: 'Send less, or send it in larger chunks.',
  },
  unsupported_media_type: {
    when: 'The body has no `Content-Type: application/json`.',
    client: 'Set the header.',
  },
  invalid: {
    when: 'Fields or query parameters are wrong. `details` lists all faults at once (of up to 64 fields) under the names of their fields; `_` is the body as a whole.',
    client: 'Fix the fields named in `details`.',
  },
  upgrade_required: {
    when: 'This route requires a WebSocket (version 13) upgrade.',
    client: 'Use a WebSocket client, with the subprotocol that `message` names.',
  },
  rate_limited: {
    when: 'The tenant sent too many requests, or the address sent too many wrong tokens or public requests. Either has too many requests in flight, too many open streams and waits (32 for a tenant, `LIMIT_STREAMS_PER_ADDRESS` for an address), too many sessions (16 for a tenant, 8 for a container), or too much memory in unfinished bodies. Or the tenant deleted too many containers in the last hour to create one (cap `deletes_per_hour`), removed too many VPN peers, or renewed a peer’s keys too often; then `message` says which, and `retry_after_seconds` how long to wait. Nothing was executed.',
    client: 'Wait as long as `Retry-After` says, then send the request again.',
  },
  internal: {
    when: 'A bug in Longshore, or a damaged record of a container. The request was not executed.',
    client: 'Report it with the `X-Request-Id`. A retry seldom helps.',
  },
  unavailable: {
    when: 'The gateway can’t reach NATS, the owner of the tenant’s partition or the token issuer’s keys; the journal of its process is full; the gateway has too many requests in flight, open streams or bytes of unfinished bodies (`message` says which); it is stopping; or an upgrade is under way and actors of the last release do not know the request (`message` says so). A write with this answer was not executed.',
    client: 'Send the request again after `Retry-After` seconds, then at growing intervals.',
  },
  timeout: {
    when: 'The owner did not answer a write within the deadline: the write may have been executed, or may still be. Or a wait ended before the container had the status.',
    client:
      'Send a POST again with the same `Idempotency-Key`. Repeat a start, stop or delete as it is. Ask again for a wait.',
  },
};

interface StatusWords {
  readonly meaning: string;
  readonly next: string;
}

export const statusWords: Readonly<Record<ContainerStatus, StatusWords>> = {
  pending: {
    meaning: 'Declared; no host has taken it yet. Reason `no_host`: no host can take it now.',
    next: 'pulling, starting, failed, stopped',
  },
  pulling: { meaning: 'Its image is being pulled.', next: 'starting, backoff, failed, stopping' },
  starting: { meaning: 'Created, but not yet up, or not yet healthy.', next: 'running, backoff, failed, stopping' },
  running: { meaning: 'Its process is up.', next: 'stopping, backoff, failed' },
  backoff: {
    meaning: 'It ended or could not be created, and is tried again at `next_retry_at`; a start tries at once.',
    next: 'pulling, starting, failed, stopping',
  },
  stopping: { meaning: 'Asked to stop; killed if it still runs after the grace.', next: 'stopped, failed' },
  stopped: { meaning: 'Not running, as asked.', next: 'pending' },
  failed: { meaning: 'Not retried by itself; a start tries again.', next: 'pending, stopped' },
  unknown: {
    meaning: 'Its host is silent. `observed_status` is the last status seen, which most likely still holds.',
    next: 'any, with the host’s next report',
  },
  lost: {
    meaning: 'Its host is lost or was removed.',
    next: 'pending, if the platform had chosen the host',
  },
  removing: { meaning: 'Being removed.', next: 'gone: 404' },
};

export const conflictWords: Readonly<Record<ConflictReason, ReasonWords>> = {
  removing: {
    meaning: 'It is being removed, or was.',
    todo: 'Make another one. A name comes free when the old container is gone (404).',
  },
  not_running: {
    meaning: 'The container does not run, or does not reach the status waited for by itself.',
    todo: 'Read its status; start it or change it.',
  },
  in_use: {
    meaning: 'Something still uses it: containers a secret, peers a network, containers a host.',
    todo: 'Remove the users first; `detail.containers` has the ids of up to 100 of a secret’s.',
  },
  exists: { meaning: 'Another thing has this name.', todo: 'Choose another name, or read what is there.' },
  no_host: {
    meaning: 'No host has room for the limits that an update wants; nothing was changed.',
    todo: 'Ask for less, or try again when there is room.',
  },
  managed: {
    meaning: 'Something else manages it, and would undo the change. No route answers this yet.',
    todo: 'Change what manages it.',
  },
  overlaps: {
    meaning: 'Its addresses are in the range of another one, or in that of containers.',
    todo: 'Choose another range.',
  },
  elsewhere: {
    meaning: 'It is on a host that it can’t leave now, or moves already.',
    todo: 'Wait as the message says, or leave `host_key` as it is.',
  },
  key_used: {
    meaning: 'Something that serves once was used: an `Idempotency-Key`, or the choice of a tenant at a sign-in.',
    todo: 'Send the request with another key, or sign in again.',
  },
  too_many: {
    meaning:
      'There are as many as there may be: `detail.max`, where the number is fixed. Of a list of logs: more containers match.',
    todo: 'Delete one first. Of logs: name fewer containers.',
  },
  changed: {
    meaning: 'Another request has changed it at the same time.',
    todo: 'Read it again, and send the request again.',
  },
  disabled: {
    meaning: 'The peer is disabled or expired, or its network does not serve this tenant.',
    todo: 'Enable it, set a later `expires_at`, or ask the operator.',
  },
  refused: {
    meaning: 'The container refused: it has no such program or user, or nothing listens on the port.',
    todo: 'Read the `message`; fix the request or the image.',
  },
  unsupported: { meaning: 'This one can’t do that, now or later.', todo: 'Do without, or make another one.' },
  damaged: {
    meaning: 'A stored record is damaged.',
    todo: 'Contact support. Operator: see the runbook, “Quarantined records”.',
  },
};

interface ReasonWords {
  readonly meaning: string;
  readonly todo: string;
}

export const reasonWords: Readonly<Record<Reason, ReasonWords>> = {
  no_host: {
    meaning: 'No host of an allocated region is up, schedulable and has room.',
    todo: 'Wait: the container is placed as soon as a host fits. Operator: add or uncordon a host, or check capacities and `free_ports`.',
  },
  exited: {
    meaning: 'The process ended by itself; `exit_code` says how. This includes 0 under the policy `always`.',
    todo: 'Read the logs. The container is restarted with back-off, unless its policy is `never`.',
  },
  completed: {
    meaning: 'It has run to its end, with exit code 0, and its policy does not start it again.',
    todo: 'Nothing. A start runs it again.',
  },
  crash_loop: {
    meaning: 'It ended quickly at least three times in a row.',
    todo: 'Read the logs of the last runs; fix the image, command or environment. The back-off grows to a minute.',
  },
  oom_killed: {
    meaning: 'The kernel killed it, or a process of it, at its `mem_limit`.',
    todo: 'Declare it with more memory, or use less. The container is restarted with back-off.',
  },
  disk_limit: {
    meaning:
      'The container wrote more to the host’s disk than its limit (its own layer and the volumes that its image declares), or could not be measured while the disk was nearly full. It is stopped and keeps all that it wrote. It starts again by itself when it has less, or when its limit is raised; a job with the policy `never` does not.',
    todo: 'Start it, and delete data with `exec` at once: it runs until the next measurement, within 30 seconds. Then write less, in fewer files, and logs on standard output. Operator: delete data in its volume on the host, or raise `CONTAINER_DISK_BYTES` or the size that containers are declared with.',
  },
  image_missing: {
    meaning: 'The container names no repository.',
    todo: 'Declare it again, with a `repository`.',
  },
  image_not_found: {
    meaning:
      'The registry has no such repository, tag or digest; or `pull_policy` is `never` and the host does not have the image.',
    todo: 'Check registry, repository and tag; push the image, then start. With `never`: put the image on the hosts; the container tries another host, and waits with back-off.',
  },
  image_auth: {
    meaning:
      'The registry refuses the tenant’s login, or wants one; some say this of repositories that do not exist. Or this host has the image by the login of another tenant alone. `message` says which. `backoff` in place of `failed`: the newest login may not have been tried.',
    todo: 'Check the name; put a login that has access (`PUT /registries/:registry`): the container is then tried again. Operator: name registries that hold what they say in `REGISTRIES_ALLOWED`.',
  },
  image_pull: {
    meaning: 'The pull failed for a reason that may pass: the network, a rate limit, trouble at the registry.',
    todo: 'Wait: the pull is retried with back-off. Operator: check that the host reaches the registry.',
  },
  image_invalid: {
    meaning:
      'The engine rejects the reference, there is no image for this platform, or the content does not match its digest.',
    todo: 'Fix the reference, or build the image for the hosts’ platform.',
  },
  registry_not_allowed: {
    meaning:
      'The host may not pull from this registry (`REGISTRIES_ALLOWED`): it is on no list, is no public name, or its name resolves to an address of a private network. The engine was not asked.',
    todo: 'Use a registry that is allowed, then start. Operator: name the registry in `REGISTRIES_ALLOWED` of the hosts.',
  },
  image_refused: {
    meaning:
      'The image declares more than a host accepts: labels, an entrypoint and command, an environment, a health check, ports, volumes or a history beyond the limits, or a `VOLUME` that is no path below `/`; `message` says which.',
    todo: 'Rebuild the image with less, push it under a new tag, and declare the container with that tag.',
  },
  create_failed: {
    meaning:
      'The engine refused to create the container. Its message is in the agent’s log (`step_taken`, field `detail`).',
    todo: 'Operator: read the agent’s log. A permanent refusal ends in `failed`; otherwise the create is retried.',
  },
  start_failed: {
    meaning: 'The engine created the container but could not start it: the command does not exist, for example.',
    todo: 'Read the message; fix the image or command. The start is retried with back-off. Operator: the engine’s message is in the agent’s log (`step_taken`, field `detail`).',
  },
  secret_missing: {
    meaning:
      'The host can’t get a secret of the tenant, or has no tmpfs for its file (`message` says which, and why); or a secret that the operator’s fields name is not in its secrets folder.',
    todo: 'Wait: the start is retried with back-off, on another host if the platform chose this one. If the message says that the value is damaged, put it again. Operator: check that gateways have the vault’s keys and HOSTS_ACCOUNT_FILE, and may answer hosts (event `unseal_failed` with the reason `unavailable`); run `host-agent doctor` for `SECRET_FILES_DIR`; put the operator’s file into `SECRETS_DIR` of the hosts.',
  },
  host_fault: {
    meaning:
      'The host can’t start containers: its disk is full, no address or port is left, or its firewall or its engine’s storage fails. `message` says which.',
    todo: 'Wait: the platform moves containers that it placed. If you chose the host, choose another. Operator: see the runbook, “Containers that do not start on a host”.',
  },
  port_unavailable: {
    meaning:
      'The engine could not publish a port: another program of the host listens on it, or `PUBLISH_ADDRESS` is not an address of the host.',
    todo: 'Wait: the start is retried with back-off. Operator: check `PUBLISH_ADDRESS`, and what else listens on the host’s ports.',
  },
  rejected: {
    meaning: 'The host that the tenant chose has no room for its limits.',
    todo: 'Choose another host or none, or start again when there is room.',
  },
  engine_unavailable: {
    meaning: 'The host’s container engine does not answer; the status is the last one seen.',
    todo: 'Wait. Operator: see the runbook, “Hanging engine”.',
  },
  unhealthy: {
    meaning: 'The container runs, but its health check fails: that of its policy, else that of its image.',
    todo: 'Read the message and the logs. It is started again if its policy has `restart_unhealthy`.',
  },
  host_silent: {
    meaning: 'Its host has been silent for 8 seconds. Most likely the container still runs.',
    todo: 'Wait. Operator: see the runbook, “Silent or lost host”.',
  },
  host_lost: {
    meaning: 'Its host has been silent for 5 minutes.',
    todo: 'If the platform chose the host, it places the container elsewhere; a container that its tenant pinned waits for its host. One with the policy `never` is `failed`: start it if it should run again.',
  },
  host_removed: {
    meaning: 'The operator removed the host that the tenant had chosen.',
    todo: 'Delete the container and declare it elsewhere.',
  },
};

/** Adds to a setting's description in the code, which is one line. */
export const settingWords: Readonly<Record<string, string>> = {
  'gateway HTTP_HOST':
    'Keep the default behind a proxy on the same machine; otherwise use an address that only the proxy reaches.',
  'gateway TRUSTED_PROXIES': 'Without it all clients behind a proxy count as one client.',
  'gateway REQUEST_DEADLINE': 'Give a proxy a longer time-out, and a much longer one for streams and waits.',
  'gateway SHUTDOWN_DELAY': 'Longer than the proxy’s interval between health checks.',
  'gateway REDIS_URL': 'Use it with several gateways; docs/deploy.md, Redis, has its configuration.',
  'actors LONGSHORE_REPLICAS': 'Used only when streams are made; change it later with `nats stream edit`.',
  'actors HOST_MAX_CPU_MILLIS': 'A host that claims more has the fault `over_ceiling`.',
  'actors HOST_LOST': 'Shorter: containers move sooner, and run in two places at once more often.',
  'host-agent LONGSHORE_JOIN_TOKEN': 'Valid once, for an hour.',
  'host-agent STOP_ON_DISCONNECT':
    'For containers that must not run in two places: set it below `HOST_LOST` of the actors.',
  'host-agent PUBLISH_ADDRESS': 'An address that the containers’ clients reach.',
  'host-agent SECRETS_DIR': 'Make it readable only for the agent.',
  'host-agent SECRET_FILES_DIR': 'See [deployment](deploy.md#secrets-on-hosts).',
};

interface ToolingWords {
  readonly form: string;
  readonly fallback: string;
  readonly meaning: string;
}

/**
 * Environment variables of this repository's commands, other than those that set the path of a
 * tool.
 */
export const toolingWords: Readonly<Record<string, ToolingWords>> = {
  LONGSHORE_CACHE: {
    form: 'folder',
    fallback: '.cache',
    meaning: 'Downloads and unpacked tools; may be deleted while nothing runs.',
  },
  LONGSHORE_STATE: {
    form: 'folder',
    fallback: '.longshore',
    meaning:
      'Holds what `npm start` keeps: keys, JetStream’s files, the private engine’s images and containers, logs, and `dev.json` and `profiles.json` while it runs. Two starts at the same time need two folders.',
  },
  DOCKER_HOST: {
    form: 'unix:///path/to/docker.sock or tcp://host:port',
    fallback: 'the usual sockets',
    meaning:
      'The engine that `npm start` uses; it must answer. If it is not set and no engine answers, `npm start` starts a private one (Linux, root). `npm test` uses it only if it cannot start a private one.',
  },
};

export const toolWords: Readonly<Record<ToolName, string>> = {
  'nats-server': 'The nats-server to run.',
  'redis-server': 'The Redis to run.',
  dockerd: 'The dockerd of the private engine; `containerd`, `runc` and `iptables` must be beside it or on PATH.',
  'docker-registry': 'The OCI registry that holds the demo image.',
  'ld-linux-x86-64.so.2': 'The loader of a C library that the fast HTTP engine for Node 24 and 26 runs on.',
  busybox: 'The statically linked BusyBox that the demo image is made of.',
  promtool:
    'Checks metrics, rules and configuration in the tests, and runs the queries of the dashboards (with `prometheus`, of the same package).',
  openssl:
    'Reads certificates and bundles in the tests. If this tool or one listed below is missing, the tests that need it are skipped.',
  pk12util: 'Reads bundles in the tests, as Firefox would; NSS’s `certutil` must be beside it or on PATH.',
  ip: 'Joins two network namespaces for the VPN connections of the tests.',
  ping: 'Tests the VPN connections.',
  nginx:
    'Runs in front of a server in the tests, with the sample of [deploying](deploy.md#a-proxy-in-front-of-the-gateways).',
  haproxy: 'Runs in front of a gateway in the tests, with the configuration in `deploy/haproxy/`.',
  nft: 'Keeps the containers of `npm start` from reaching this machine; `wg-quick` guards a default route with it in the tests.',
  buildah: 'Builds the container images of deploy/ in the tests.',
  'docker-compose': 'Runs `deploy/compose/` in the tests.',
  squid: 'Runs in the tests as the proxy for engines that docs/deploy.md describes.',
  wg: 'Makes WireGuard connections in the tests; `wg-quick` and `sysctl` must be beside it or on PATH.',
  'wireguard-go': 'WireGuard for the tests, if the kernel has none.',
  'chromium-headless-shell': 'The browser in the tests of sign-in; without it they are skipped.',
  swanctl: 'strongSwan, which makes IKEv2 connections in the tests; it needs `charon-systemd` and plugins.',
  zsh: 'Runs the completion of `longshore` in the tests.',
  fish: 'Runs the completion of `longshore` in the tests.',
  wrk: 'Generates the load of `npm run bench`.',
  postgres: 'The PostgreSQL that `npm run bench` measures beside Longshore; `initdb` must be beside it or on PATH.',
};
