import type { Readable } from 'node:stream';
import type { ComponentChildren } from 'preact';
import type { Act, Role } from '../../domain/account/dashboard-role';
import type { Audit } from '../../service/audit-log';
import type { Owner } from '../../service/deps';
import type { Flash } from '../../service/team/sessions';
import type { DashboardDeps } from '../deps';

export type Env = 'sandbox' | 'live';

/** Signed-in user, with the account and environment of the address. */
export interface Viewer {
  user: { id: string; email: string; role: Role };
  account: { id: string; name: string; crypto: boolean; frozen: boolean };
  env: Env;
  livemode: boolean;
  /** Id of the session. */
  session: string;
  /** Token that each form of this session carries. */
  csrf: string;
}

/** Request of a signed-in user, after the checks of session, role and form token. */
export interface Call {
  viewer: Viewer;
  /** Owner of all that the page shows. */
  scope: Owner;
  /** Path of this request within `/dashboard`. */
  path: string;
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
  /** Fields of a POST; empty for a GET. */
  form: URLSearchParams;
  requestId: string;
  now: Date;
  may: (act: Act) => boolean;
  /** Writes the audit log in this user's name. */
  audit: Audit;
  /** Address of a page in this environment: `href('/payments')`. */
  href: (path: string) => string;
}

/** Dependencies of a page: what it does is audited in the user's name. */
export interface PageDeps extends DashboardDeps {
  audit: Audit;
}

/** Answer of a route. */
export type Answer =
  | { page: ComponentChildren; title?: string; status?: number }
  | { go: string; flash?: Flash }
  | { download: Readable; filename: string; type: string }
  | 'not_found';

/** Question before an act that cannot be undone, or that shows a secret. */
export interface Confirmation {
  question: string | ((form: URLSearchParams) => string);
  /** Button of the confirmation page. */
  button: string;
  /** Requires the password again. */
  password?: true;
}

/** Page or act of the dashboard; the table of them is `routes.ts`. */
export interface Route {
  method: 'get' | 'post';
  /** Path behind `/dashboard/{environment}`, with parameters as `:id`. */
  path: string;
  /** Act that the user's role must allow. */
  act: Act;
  title: string;
  /** Only for accounts with crypto. */
  crypto?: true;
  /**
   * Also for a frozen account: the POST makes the account safer, or sends existing events again. Every
   * other one is refused.
   * @see docs/operators.md#freeze-an-account
   */
  whileFrozen?: true;
  /** Required before a POST is handled. */
  confirmation?: Confirmation;
  handle: (call: Call, deps: PageDeps) => Promise<Answer>;
}
