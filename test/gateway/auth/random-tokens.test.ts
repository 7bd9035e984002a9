import { createHash } from 'node:crypto';
import t from 'tap';
import {
  hashOfToken,
  hostOfJoinToken,
  newToken,
  parseToken,
  tokenOfLink,
} from '../../../gateway/auth/random-tokens.ts';

t.test('a token in a URL names its files and its partition', (t) => {
  for (const [kind, partition, form] of [
    ['download', 0, /^lsd_0_[A-Za-z0-9_-]{43}$/],
    ['pac', 15, /^lsp_15_[A-Za-z0-9_-]{43}$/],
    ['link', 7, /^lsl_7_[A-Za-z0-9_-]{43}$/],
  ] as const) {
    const { text, hash } = newToken(kind, partition);
    t.match(text, form);
    t.same(parseToken(text), { kind, partition });
    t.equal(hash, createHash('sha256').update(text).digest('hex'));
    t.equal(hashOfToken(text), hash);
    t.not(newToken(kind, partition).text, text);
  }
  const good = newToken('download', 3).text;
  const random = good.slice(-43);
  for (const bad of [
    '',
    random,
    good.slice(0, -1),
    `${good}A`,
    `${good}\n`,
    ` ${good}`,
    `lsx_3_${random}`,
    `lsd_03_${random}`,
    `lsd_-1_${random}`,
    `lsd_10000_${random}`,
    `lsd__${random}`,
    `LSD_3_${random}`,
    good.replace(/.$/, '='),
  ]) {
    t.equal(parseToken(bad), undefined, JSON.stringify(bad));
  }
  t.end();
});

t.test('the download token of a link is the same for one browser, and no other’s', (t) => {
  const { text: link } = newToken('link', 3);
  const [mine, theirs] = ['a'.repeat(43), 'b'.repeat(43)];
  const { text, hash } = tokenOfLink(link, mine, 3);
  t.same(parseToken(text), { kind: 'download', partition: 3 });
  t.equal(hash, hashOfToken(text));
  t.equal(tokenOfLink(link, mine, 3).text, text);
  const others = [tokenOfLink(link, theirs, 3), tokenOfLink(newToken('link', 3).text, mine, 3)];
  t.equal(new Set([text, ...others.map((one) => one.text)]).size, 3);
  for (const secret of [link, mine]) t.notOk(text.includes(secret.slice(-43)));
  t.end();
});

const secret = 's'.repeat(43);

t.test('a join token names its host', (t) => {
  t.equal(hostOfJoinToken(`lsj_host-1_${secret}`), 'host-1');
  for (const wrong of ['', `lsj_host-1_${secret}x`, `lsj__${secret}`, `lsj_Host_${secret}`, `x${secret}`]) {
    t.equal(hostOfJoinToken(wrong), undefined, wrong);
  }
  t.end();
});
