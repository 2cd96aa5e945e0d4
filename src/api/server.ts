import { randomUUID } from 'node:crypto';
import { createServer, type RequestListener, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { Refusal } from '../domain/errors';
import { NOTHING_ALLOWED } from '../pages/security';
import { errorBody } from './error-middleware';
import { SERVICE_VERSION } from './openapi';

const LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  // Longer than most proxies hold a connection, so no request meets a closing one. Headers have
  // their own limit, which begins with their first byte.
  keepAliveTimeout: 65_000,
  // Node's default of 30 seconds would stretch a limit of 10 seconds to 40.
  connectionsCheckingInterval: 1_000,
  // Without a byte in either direction. Longer than a simulation waits for its slot.
  inactivityTimeout: 120_000,
  // For a client to read the answer to what is no request.
  lingerTimeout: 1_000,
};
const CONNECTIONS_MAX = 5_000;
const HEADERS_MAX = 100;
const HEADER_BYTES_MAX = 16 * 1_024;

const UNREADABLE: Readonly<Record<string, { status: number; message: string }>> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    message: `The request's headers are larger than ${HEADER_BYTES_MAX} bytes.`,
  },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'The request did not arrive in time.' },
};

export function createHttpServer(
  listener: RequestListener,
  limits: Partial<typeof LIMITS> = {},
): Server {
  const { inactivityTimeout, lingerTimeout, ...options } = { ...LIMITS, ...limits };
  const server = createServer({ maxHeaderSize: HEADER_BYTES_MAX, ...options }, listener);
  server.timeout = inactivityTimeout;
  server.maxConnections = CONNECTIONS_MAX;
  server.maxHeadersCount = HEADERS_MAX;
  server.on('clientError', (error, socket: Socket) => {
    answerUnreadable(error, socket);
    // A client that leaves its side open: `end` only closes ours.
    const timer = setTimeout(() => socket.destroy(), lingerTimeout);
    socket.once('close', () => clearTimeout(timer));
  });
  return server;
}

function answerUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const { status, message } = UNREADABLE[error.code ?? ''] ?? {
    status: 400,
    message: 'The request is not readable as HTTP.',
  };
  const requestId = randomUUID();
  const body = JSON.stringify(errorBody(new Refusal('invalid_request', message), requestId));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    `Request-Id: ${requestId}`,
    `Service-Version: ${SERVICE_VERSION}`,
    ...Object.entries(NOTHING_ALLOWED).map(([name, value]) => `${name}: ${value}`),
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

export async function closeServer(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const force = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearTimeout(force);
}
