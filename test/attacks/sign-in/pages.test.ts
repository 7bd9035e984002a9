/**
 * Another site frames the pages of the sign-in, or has markup in a link that a person opens. The
 * pages run and load nothing, may not be framed, and show what others write as text.
 */
import t from 'tap';
import { startSignIn } from './support.ts';

const { gateway, begin } = await startSignIn(t);
const markup = '"><script src=//evil.test></script><img src=x onerror=alert(1)>\'';

async function pageOf(path: string, init: RequestInit = {}) {
  const response = await fetch(`${gateway.url}${path}`, {
    redirect: 'manual',
    ...init,
    headers: { accept: 'text/html', ...init.headers },
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

t.test('the pages run nothing, load nothing, and may not be framed', async (t) => {
  const choice = await begin('bob');
  const paths: [string, RequestInit?][] = [
    [`/login?tenant=${encodeURIComponent(markup)}`],
    [`/login/callback?state=${encodeURIComponent(markup)}&code=${encodeURIComponent(markup)}`],
    [`/login/callback?error=${encodeURIComponent(markup)}&error_description=${encodeURIComponent(markup)}`],
    [`/login?return_to=${encodeURIComponent(`//evil.test/${markup}`)}`],
    [choice.path, { headers: { cookie: choice.cookie } }],
    ['/logout'],
  ];
  let pages = 0;
  for (const [path, init] of paths) {
    const { status, headers, text } = await pageOf(path, init);
    t.notMatch(text, /<script|<img|onerror=(?!.*&)|src=\/\/evil/i, `${path}: ${status}`);
    t.notMatch(headers.get('location') ?? '', /^(?:https?:)?\/\/evil/, 'leads to no other site');
    if (!/text\/html/.test(headers.get('content-type') ?? '')) continue;
    pages++;
    const policy = headers.get('content-security-policy') ?? '';
    for (const rule of ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"]) {
      t.match(policy, rule, path);
    }
    t.notMatch(policy, /unsafe|script-src|\*/, path);
    t.equal(headers.get('x-content-type-options'), 'nosniff');
  }
  t.ok(pages >= 2, `${pages} pages`);
});
