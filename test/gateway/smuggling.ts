/**
 * Requests that two HTTP parsers could read differently, each with another request hidden in it.
 */

/** Must never run. */
export const hiddenRequest = 'GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n';
const hidden = hiddenRequest;

type Case = readonly [name: string, request: string];

/** Every one of them must not run what is hidden in it, and must not leave the connection open. */
export const ambiguousRequests = (path: string): readonly Case[] => [
  [
    'two lengths',
    `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
  ],
  [
    'the same length twice',
    `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n${hidden}`,
  ],
  ['a list of lengths', `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0, ${hidden.length}\r\n\r\n${hidden}`],
  ['a signed length', `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: +0\r\n\r\n${hidden}`],
  [
    'length and chunks',
    `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${5 + hidden.length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
  ],
  ['gzip, chunked', `POST ${path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${hidden}`],
  ['identity', `POST ${path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n${hidden}`],
  [
    'encoding twice',
    `POST ${path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n${hidden}`,
  ],
  ['two hosts', `GET ${path} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n${hidden}`],
  [
    'two authorizations',
    `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n${hidden}`,
  ],
  [
    'two idempotency keys',
    `POST ${path} HTTP/1.1\r\nHost: a\r\nIdempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 0\r\n\r\n${hidden}`,
  ],
];

/** Chunked bodies whose lines end as they must not, or that go on where they must end. */
export const misframedChunks = (path: string): readonly Case[] => {
  const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
  return [
    ['a size that ends in LF', `${head}2\n{}\r\n0\r\n\r\n${hidden}`],
    ['data that end in LF', `${head}2\r\n{}\n0\r\n\r\n${hidden}`],
    ['LF everywhere', `${head}2\n{}\n0\n\n${hidden}`],
    ['a last chunk that ends in LF', `${head}2\r\n{}\r\n0\n\r\n${hidden}`],
    ['an extension with LF', `${head}2;a\n{}\r\n0\r\n\r\n${hidden}`],
    ['more data than the size', `${head}2\r\n{}XX0\r\n\r\n${hidden}`],
    ['a size that is no number', `${head}x\r\n{}\r\n0\r\n\r\n${hidden}`],
  ];
};
