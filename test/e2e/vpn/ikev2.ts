/**
 * strongSwan in a namespace, run as an operator or a user does: `swanctl` loads the files from
 * their folders. ESP runs in user space, so the kernel need not support it.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Ran } from '../../../dev/process/run.ts';
import type { ToolName } from '../../../dev/fetch/tool-table.ts';
import type { Machine } from '../../support/machine.ts';

export const ikev2Tools = ['swanctl'] as const satisfies readonly ToolName[];

const startDeadlineMs = 20_000;
const initiateDeadlineS = 10;

/** Files by their path below `/etc/swanctl`; undefined removes a file. */
export type SwanctlFiles = Readonly<Record<string, string | Uint8Array | undefined>>;

/** An established connection; algorithms as strongSwan prints them (`AES_GCM_16-256/ECP_384`). */
export interface Association {
  readonly connection: string;
  readonly ike: string;
  readonly esp: readonly string[];
  readonly text: string;
}

export interface Attempt {
  readonly connected: boolean;
  /** strongSwan's output, shown when a test fails. */
  readonly output: string;
}

export interface Strongswan {
  /** Writes files, or removes those that are undefined. `loadAll` makes the daemon read them. */
  put(files: SwanctlFiles): void;
  /**
   * Runs the documented `swanctl --load-all && swanctl --flush-certs`. Without the second command
   * the daemon keeps using its cached revocation list. Credentials whose files were removed stay
   * loaded.
   */
  loadAll(): Promise<void>;
  /** Like `loadAll`, after dropping all loaded certificates, lists and keys. */
  loadAllAfresh(): Promise<void>;
  initiate(child: string): Promise<Attempt>;
  terminate(connection: string): Promise<void>;
  /** Renews the keys of a connection, or those of one of its children. */
  rekey(of: 'ike' | 'child', name: string): Promise<void>;
  /** Runs the documented command that ends connections which are no longer configured. */
  endRemoved(): Promise<void>;
  associations(): Promise<Association[]>;
  /** Kills the daemon, and starts it again. */
  restart(): Promise<void>;
  /** The daemon's log. */
  log(): string;
}

/** The strongSwan plugins that the tests use, in its default order. */
const plugins = [
  ...['random', 'nonce', 'x509', 'revocation', 'constraints', 'pubkey', 'pkcs1', 'pkcs7', 'pkcs8', 'pkcs12', 'pem'],
  ...['openssl', 'kdf', 'gcm', 'kernel-libipsec', 'kernel-netlink', 'socket-default', 'vici', 'updown'],
].join(' ');

export interface IkePorts {
  readonly ike: number;
  readonly natt: number;
}
/** Of every client, unless it is told another one. */
const usualPorts: IkePorts = { ike: 500, natt: 4500 };

/** Marks the tunnel's own packets, so that a default route into the tunnel does not catch them. */
const mark = '0x42';

const daemonConf = (socket: string, logFile: string, { ike, natt }: IkePorts): string => `
charon-systemd {
  load = ${plugins}
  port = ${ike}
  port_nat_t = ${natt}
  # A test waits for the outcome of each try.
  retransmit_tries = 2
  retransmit_timeout = 1.0
  plugins {
    vici {
      socket = ${socket}
    }
    kernel-netlink {
      fwmark = !${mark}
    }
    socket-default {
      fwmark = ${mark}
    }
  }
  filelog {
    longshore {
      path = ${logFile}
      default = 1
      flush_line = yes
    }
  }
}
swanctl {
  socket = ${socket}
  load = random x509 pubkey pkcs1 pkcs7 pkcs8 pkcs12 pem openssl
}
`;

/** The documentation leaves out `--uri`. */
const endRemovedLine = `
comm -23 <(swanctl --list-sas --uri $URI | grep -o '^peer-[0-9a-z-]*' | sort -u) \\
  <(swanctl --list-conns --uri $URI | grep -o '^peer-[0-9a-z-]*' | sort -u) |
  xargs -rn1 swanctl --terminate --uri $URI --force --ike`;

export interface WindowsLike {
  readonly server: string;
  /** Name of the bundle below `pkcs12/`. */
  readonly file: string;
  readonly password: string;
  readonly localId: string;
}

/**
 * A configuration that proposes what Windows proposes after the setup script. As on Windows, the
 * client's identity is the subject of its certificate.
 */
export const windowsLike = ({ server, file, password, localId }: WindowsLike): string => `
connections {
  windows {
    version = 2
    remote_addrs = ${server}
    vips = 0.0.0.0, ::
    proposals = aes256-sha256-modp2048
    local {
      auth = pubkey
      id = "CN=${localId}"
    }
    remote {
      auth = pubkey
      id = ${server}
    }
    children {
      home {
        remote_ts = 0.0.0.0/0, ::/0
        esp_proposals = aes256-sha256
      }
    }
  }
}
secrets {
  pkcs12-windows {
    file = ${file}
    secret = "${password}"
  }
}
`;

export async function startStrongswan(
  namespace: Machine,
  files: SwanctlFiles,
  ports = usualPorts,
): Promise<Strongswan> {
  const { folder } = namespace;
  const own = join(folder, 'swanctl');
  const socket = `unix://${join(folder, 'vici')}`;
  const conf = join(folder, 'strongswan.conf');
  const env = { STRONGSWAN_CONF: conf, SWANCTL_DIR: own };
  const logFile = join(folder, 'charon.log');
  writeFileSync(conf, daemonConf(socket, logFile, ports));
  const swanctl = (...args: readonly string[]): Promise<Ran> =>
    namespace.run('swanctl', [...args, '--uri', socket], { env });
  const must = (...args: readonly string[]): Promise<Ran> =>
    namespace.must('swanctl', [...args, '--uri', socket], { env });
  const put: Strongswan['put'] = (entries) => {
    for (const [name, content] of Object.entries(entries)) {
      const path = join(own, name);
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      if (content === undefined) rmSync(path, { force: true });
      else writeFileSync(path, content, { mode: 0o600 });
    }
  };

  // swanctl.conf as in Debian's package.
  put({ 'swanctl.conf': 'include conf.d/*.conf\n', ...files });
  const start = () =>
    namespace.start({
      name: 'charon-systemd',
      command: 'charon-systemd',
      env,
      ready: async () => (await swanctl('--stats')).code === 0,
      readyDeadlineMs: startDeadlineMs,
    });
  let daemon = await start();
  return {
    put,
    restart: async () => {
      await daemon.kill9();
      daemon = await start();
    },
    loadAll: async () => {
      await must('--load-all', '--noprompt');
      await must('--flush-certs');
    },
    loadAllAfresh: async () => {
      await must('--load-all', '--noprompt', '--clear');
      await must('--flush-certs');
    },
    initiate: async (child) => {
      const ran = await swanctl('--initiate', '--child', child, '--timeout', String(initiateDeadlineS));
      return { connected: ran.code === 0, output: ran.stdout + ran.stderr };
    },
    endRemoved: async () =>
      void (await namespace.must('bash', ['-c', endRemovedLine], { env: { ...env, URI: socket } })),
    terminate: async (connection) => void (await must('--terminate', '--ike', connection, '--timeout', '10')),
    rekey: async (of, name) => void (await must('--rekey', `--${of}`, name)),
    associations: async () => associationsOf((await must('--list-sas')).stdout),
    log: () => readFileSync(logFile, 'utf8'),
  };
}

/**
 * Parses `swanctl --list-sas`: each connection begins in the first column, and a line of its own
 * holds the algorithms.
 */
function associationsOf(text: string): Association[] {
  return text
    .split(/^(?=\S)/m)
    .filter((part) => /^\S+: #\d+, ESTABLISHED/.test(part))
    .map((part) => ({
      connection: part.slice(0, part.indexOf(':')),
      ike: /^ {2}((?:AES|3DES|CHACHA)\S+)$/m.exec(part)?.[1] ?? '',
      esp: [...part.matchAll(/INSTALLED, \S+, ESP:(\S+)/g)].map(([, algorithms = '']) => algorithms),
      text: part,
    }));
}
