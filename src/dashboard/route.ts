import type { Readable } from 'node:stream';
import type { ComponentChildren } from 'preact';
import type { Act, Role } from '../domain/dashboard-role';
import type { Audit } from '../store/audit';
import type { Flash } from '../store/sessions';
import type { DashboardDeps } from './deps';

export type Env = 'sandbox' | 'live';

/** Person who looks, and what the address shows to them. */
export interface Viewer {
  user: { id: string; email: string; role: Role };
  account: { id: string; name: string; crypto: boolean; frozen: boolean };
  env: Env;
  livemode: boolean;
  /** Hash that names the session in the store. */
  session: string;
  /** Token that each form of this session carries. */
  csrf: string;
}

/** Request of a signed-in person, checked: session, role, token and what the route asks. */
export interface Call {
  viewer: Viewer;
  /** Filter of every query: nothing of another account or environment is ever shown. */
  scope: { account_id: string; livemode: boolean };
  /** Path of this request within `/dashboard`. */
  path: string;
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
  /** Fields of a POST; empty for a GET. */
  form: URLSearchParams;
  requestId: string;
  now: Date;
  may: (act: Act) => boolean;
  /** Writes the audit log in this person's name. */
  audit: Audit;
  /** Address of a page in this environment: `href('/payments')`. */
  href: (path: string) => string;
}

/** Answer of a route. */
export type Answer =
  | { page: ComponentChildren; title?: string; status?: number }
  | { go: string; flash?: Flash }
  | { download: Readable; filename: string; type: string }
  | 'not_found';

/** Question before an act that can't be undone, or that shows a secret. */
export interface Ask {
  question: string | ((form: URLSearchParams) => string);
  /** Button of the page that asks. */
  button: string;
  /** Asks for the password again, too. */
  password?: true;
}

/** Page or act of the dashboard; the table of them is `routes.ts`. */
export interface Route {
  method: 'get' | 'post';
  /** Path behind `/dashboard/{environment}`, with parameters as `:id`. */
  path: string;
  /** Act of the roles' table that it takes. */
  act: Act;
  title: string;
  /** Whether it is there only where the account has crypto. */
  crypto?: true;
  /**
   * Whether a POST is taken from a frozen account, too: it makes the account safer, or sends again what
   * stands. Every other one is refused.
   * @see docs/operators.md#freeze-an-account
   */
  whileFrozen?: true;
  /** Asked before a POST is handled. */
  ask?: Ask;
  handle: (call: Call, deps: DashboardDeps) => Promise<Answer>;
}
