import { extract } from 'tar-stream';
import t from 'tap';
import { tarOf } from '../../../host-agent/spec/config-files.ts';

t.test('config files become a tar archive', async (t) => {
  const files: Record<string, unknown> = {};
  const unpack = extract();
  unpack.end(
    await tarOf([
      { path: '/etc/app/a.conf', content: 'ü' },
      { path: '/run.sh', content: 'x', mode: 0o755 },
    ]),
  );
  for await (const entry of unpack) {
    const chunks: Buffer[] = [];
    for await (const chunk of entry as AsyncIterable<Buffer>) chunks.push(chunk);
    files[entry.header.name] = [entry.header.mode, Buffer.concat(chunks).toString()];
  }
  t.same(files, { 'etc/app/a.conf': [0o444, 'ü'], 'run.sh': [0o755, 'x'] });
});
