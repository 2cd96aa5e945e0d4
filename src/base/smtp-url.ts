import { isLocalHost } from './tls';

export interface SmtpServer {
  host: string;
  port: number;
  /** TLS from the first byte; otherwise STARTTLS. */
  secure: boolean;
  requireTLS: boolean;
  auth?: { user: string; pass: string };
  from?: string;
}

const PORTS: Readonly<Record<string, number>> = { 'smtp:': 587, 'smtps:': 465 };
export const SMTP_URL_FILE = /^file:\/\/(?=\/)/;

export const SMTP_URL_SYNTAX =
  'must be smtps://USER:PASSWORD@HOST:PORT?from=ADDRESS, smtp://… or file:///PATH of a file with such a URL';

export function isSmtpUrl(text: string): boolean {
  return SMTP_URL_FILE.test(text) || parseSmtpUrl(text) !== undefined;
}

/** @returns undefined for another URL */
export function parseSmtpUrl(text: string): SmtpServer | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const defaultPort = PORTS[url.protocol];
  const names = [...url.searchParams.keys()];
  const isPlain = ['', '/'].includes(url.pathname) && url.hash === '';
  if (defaultPort === undefined || url.hostname === '' || !isPlain) return undefined;
  if (names.some((name) => name !== 'from') || names.length > 1) return undefined;
  const [user, pass] = [decode(url.username), decode(url.password)];
  if (user === undefined || pass === undefined) return undefined;
  const from = url.searchParams.get('from');
  if (from !== null && !/^[^\s@<>,]+@[^\s@<>,]+$/.test(from)) return undefined;
  const secure = url.protocol === 'smtps:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return {
    ...{ host, port: url.port === '' ? defaultPort : Number(url.port), secure },
    requireTLS: !secure && !isLocalHost(host),
    ...(user !== '' && { auth: { user, pass } }),
    ...(from !== null && { from }),
  };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
