/**
 * Pages for people: small, without scripts, and kept by their policy from loading anything. Pure,
 * but for the hash of their style.
 */
import { createHash } from 'node:crypto';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { outcomeStatus } from '../../schemas/errors.ts';
import type { Result } from './respond.ts';

const style =
  'body{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:4rem auto;padding:0 1rem;color:#1d2733;background:#fff}' +
  'button{font:inherit;padding:.4rem 1rem;margin:.2rem 0;cursor:pointer}' +
  '@media(prefers-color-scheme:dark){body{color:#e6ebf0;background:#14191f}a{color:#8ab8f0}}';

const policy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** `same-origin`: with `no-referrer` browsers would hide the origin of our own forms, too. */
const headers = [
  'content-type',
  'text/html; charset=utf-8',
  'content-security-policy',
  policy,
  'referrer-policy',
  'same-origin',
  'x-content-type-options',
  'nosniff',
] as const;

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '');

/** @param body HTML; `escaped` makes it of a text */
const documentOf = (title: string, body: string): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escaped(title)} · Longshore</title>` +
  `<meta name="viewport" content="width=device-width"><style>${style}</style></head>` +
  `<body><main><h1>${escaped(title)}</h1>${body}</main></body></html>`;

export const page = (title: string, body: string): Result => ({ code: 'ok', body: documentOf(title, body), headers });

export const seeOther = (location: string, ...cookies: readonly string[]): Result => ({
  code: 'see_other',
  body: '',
  headers: ['location', location, ...cookies.flatMap((cookie) => ['set-cookie', cookie])],
});

const decodeError = decoder(
  Type.Object({
    message: Type.Optional(Type.String()),
    details: Type.Optional(Type.Record(Type.String(), Type.Array(Type.String()))),
  }),
);
const defaultMessages: Partial<Record<Result['code'], string>> = {
  not_found: 'There is no such page.',
  rate_limited: 'Too many requests came from your address; wait a little, and load the page again.',
  unavailable: 'This is not available just now; wait a little, and load the page again.',
};

const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;

/** The page that says what an error of the API says. */
export function errorPage(result: Result): Result {
  const { code, body } = result;
  const { message, details = {} } = body === '' ? {} : decodeError(Buffer.from(body));
  const [fault] = Object.entries(details).map(([field, faults]) => `${field} ${faults.join(', ')}`);
  const text =
    message ?? fault ?? defaultMessages[code] ?? `The request was answered ${outcomeStatus[code]} (${code}).`;
  const title = code === 'unavailable' ? 'Not available' : 'That did not work';
  return {
    ...result,
    body: documentOf(title, `<p>${escaped(sentence(text))}</p>`),
    headers: [...headers, ...(result.headers ?? [])],
  };
}
