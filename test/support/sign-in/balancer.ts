/** A load balancer before several gateways: each request goes to the next of them. */
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';

export interface Balancer {
  readonly url: string;
  /** From now on requests go here. */
  spreadOver(urls: readonly string[]): void;
}

export async function startBalancer(t: Test): Promise<Balancer> {
  let targets: readonly string[] = [];
  let count = 0;
  const server = createServer((incoming, outgoing) => {
    const { method, headers, url = '/' } = incoming;
    const target = new URL(url, targets[count++ % targets.length]);
    const forwarded = request(target, { method, headers, agent: false }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      answer.pipe(outgoing);
    });
    forwarded.on('error', () => outgoing.destroy());
    incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spreadOver: (urls) => void (targets = urls),
  };
}
