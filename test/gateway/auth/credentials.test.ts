import t from 'tap';
import { cookieValues, credentialsOf, isCrossSite, twinName, twinOf } from '../../../gateway/auth/credentials.ts';
import type { RequestHeaders } from '../../../gateway/http/engine/guard.ts';
import { limits } from '../../../schemas/limits.ts';

t.test('the bearer token counts before the cookie', async (t) => {
  const jws = 'aa.bb.cc';
  const twin = `${twinName}=${twinOf(jws)}`;
  const cases: readonly (readonly [headers: RequestHeaders, verdictOf: string])[] = [
    [{}, 'none'],
    [{ authorization: `Bearer ${jws}` }, `bearer ${jws}`],
    [{ authorization: `bearer   ${jws}` }, `bearer ${jws}`],
    [{ authorization: `BEARER ${jws}` }, `bearer ${jws}`],
    [{ authorization: 'Bearer' }, 'malformed'],
    [{ authorization: 'Bearer x' }, 'malformed'],
    [{ authorization: `Bearer ${jws}, x` }, 'malformed'],
    [{ authorization: `Bearer ${'a'.repeat(limits.tokenBytes)}.b.c` }, 'malformed'],
    [{ authorization: `Basic ${jws}` }, 'none'],
    [{ authorization: `Bearer${jws}` }, 'none'],
    [{ authorization: `Basic x`, cookie: `_dro_token=${jws}` }, `cookie ${jws}`],
    [{ authorization: 'Bearer x', cookie: `_dro_token=${jws}` }, 'malformed'],
    [{ authorization: `Bearer ${jws}`, cookie: '_dro_token=dd.ee.ff' }, `bearer ${jws}`],
    [{ cookie: `a=1; _dro_token=${jws}; b=2` }, `cookie ${jws}`],
    [{ cookie: `_dro_token="${jws}"` }, `cookie ${jws}`],
    [{ cookie: `_dro_token=${jws}; _dro_token=dd.ee.ff` }, 'malformed'],
    [{ cookie: `_dro_token=${jws}; _dro_token="${jws}"` }, `cookie ${jws}`],
    [{ cookie: `_dro_token=dd.ee.ff; _dro_token=${jws}; ${twin}` }, `twinned cookie ${jws}`],
    [{ cookie: `${twin}; _dro_token=${jws}; _dro_token=dd.ee.ff` }, `twinned cookie ${jws}`],
    [{ cookie: `${twin}; _dro_token=dd.ee.ff` }, 'malformed'],
    [{ cookie: twin }, 'none'],
    [{ authorization: 'Bearer dd.ee.ff', cookie: `${twin}; _dro_token=${jws}` }, 'bearer dd.ee.ff'],
    [{ cookie: `x_dro_token=${jws}` }, 'none'],
    [{ cookie: `_dro_token_x=${jws}` }, 'none'],
    [{ cookie: '_dro_token=' }, 'malformed'],
    [{ cookie: ';;=; _dro_token' }, 'none'],
  ];
  for (const [headers, verdictOf] of cases) {
    const found = credentialsOf(headers);
    t.equal(
      found.kind === 'token' ? `${found.from} ${found.token}` : found.kind,
      verdictOf,
      JSON.stringify(headers).slice(0, 80),
    );
  }
  t.same([...cookieValues('', 'a')], []);
  t.same([...cookieValues('a=1; b=2; a="3"; a=1', 'a')], ['1', '3']);
});

t.test('cross-site requests with a cookie', async (t) => {
  const host = 'api.example.org';
  const cases: readonly (readonly [headers: RequestHeaders, refused: boolean])[] = [
    [{ host }, false],
    [{ host, secFetchSite: 'same-origin' }, false],
    [{ host, secFetchSite: 'none' }, false],
    [{ host, secFetchSite: 'same-site' }, true],
    [{ host, secFetchSite: 'cross-site' }, true],
    [{ host, secFetchSite: 'same-origin', origin: 'https://evil.test' }, false],
    [{ host, secFetchSite: 'cross-site', origin: `https://${host}` }, true],
    [{ host, origin: `https://${host}` }, false],
    [{ host: `${host}:443`, origin: `https://${host}` }, false],
    [{ host: `${host}:8080`, origin: `http://${host}:8080` }, false],
    [{ host: `${host}:8080`, origin: `http://${host}` }, true],
    [{ host: host.toUpperCase(), origin: `https://${host}` }, false],
    [{ host, origin: 'https://evil.test' }, true],
    [{ host, origin: `https://${host}.evil.test` }, true],
    [{ host, origin: 'null' }, true],
    [{ host, origin: '' }, true],
    [{ host, origin: `ftp://${host}` }, true],
    [{ origin: `https://${host}` }, true],
  ];
  for (const [headers, refused] of cases) {
    const said = JSON.stringify(headers);
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      t.equal(isCrossSite(method, 'cookie', headers), refused, `${method} ${said}`);
      t.equal(isCrossSite(method, 'twinned cookie', headers), refused);
      t.equal(isCrossSite(method, 'bearer', headers), false);
    }
    for (const method of ['GET', 'HEAD']) t.equal(isCrossSite(method, 'cookie', headers), false);
  }
});
