import { type ComponentChildren, createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Call } from './route';

const CurrentCall = createContext<Call | null>(null);

/** Page of a call: its parts read the call by `useCall`. */
export function CallPage({ call, children }: { call: Call; children: ComponentChildren }) {
  return <CurrentCall.Provider value={call}>{children}</CurrentCall.Provider>;
}

/** @throws Error outside of `CallPage` */
export function useCall(): Call {
  const call = useContext(CurrentCall);
  if (call === null) throw new Error('This part belongs to a page of a call.');
  return call;
}

interface PageHeadProps {
  title: string;
  badge?: ComponentChildren;
  children?: ComponentChildren;
}

export function PageHead({ title, badge, children }: PageHeadProps) {
  return (
    <div class="head">
      <h1>{title}</h1>
      {badge}
      {children !== undefined && <div class="actions">{children}</div>}
    </div>
  );
}

export function Panel({ title, children }: { title?: string; children: ComponentChildren }) {
  return (
    <section class="panel">
      {title !== undefined && <h2>{title}</h2>}
      {children}
    </section>
  );
}

export type Column<R> = readonly [heading: string, cell: (row: R) => ComponentChildren];

interface TableProps<R> {
  label: string;
  columns: readonly Column<R>[];
  rows: readonly R[];
  /** Address to which the first cell of a row leads. */
  getHref?: (row: R) => string | undefined;
  none: ComponentChildren;
}

export function Table<R>({ label, columns, rows, getHref, none }: TableProps<R>) {
  if (rows.length === 0) return <div class="empty">{none}</div>;
  return (
    <table aria-label={label}>
      <thead>
        <tr>
          {columns.map(([heading]) => (
            <th key={heading} scope="col">
              {heading}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, line) => {
          const href = getHref?.(row);
          return (
            <tr key={line}>
              {columns.map(([heading, cell], at) => (
                <td key={heading} data-label={heading}>
                  {at === 0 && href !== undefined ? <a href={href}>{cell(row)}</a> : cell(row)}
                </td>
              ))}
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

export function Pager({ older, newer }: { older: string | undefined; newer: string | undefined }) {
  if (older === undefined && newer === undefined) return null;
  return (
    <nav class="pager" aria-label="Pages">
      {newer !== undefined && (
        <a class="button plain" href={newer} rel="prev">
          Newer
        </a>
      )}
      {older !== undefined && (
        <a class="button plain" href={older} rel="next">
          Older
        </a>
      )}
    </nav>
  );
}

type Tone = 'good' | 'bad' | 'note' | 'plain';

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

export function When({ at }: { at: string | null }) {
  if (at === null) return <span class="muted">–</span>;
  return <time dateTime={at}>{`${at.slice(0, 19).replace('T', ' ')} UTC`}</time>;
}

export type FactRow = readonly [name: string, value: ComponentChildren];

export function Facts({ rows }: { rows: readonly FactRow[] }) {
  return (
    <dl>
      {rows
        .filter(([, value]) => value !== null)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

export function Copyable({ label, text }: { label: string; text: string }) {
  return (
    <div class="copyable">
      <code>{text}</code>
      <button
        type="button"
        class="plain small"
        data-copy={text}
        hidden
        aria-label={`Copy ${label}`}
      >
        Copy
      </button>
    </div>
  );
}

export function Preformatted({ text }: { text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard
    <pre class="wrap" tabIndex={0}>
      {text}
    </pre>
  );
}

export function Note({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return (
    <div class={`message ${tone}`} role={tone === 'bad' ? 'alert' : 'status'}>
      {children}
    </div>
  );
}

interface PostFormProps {
  path: string;
  button: string;
  tone?: 'plain' | 'danger';
  hidden?: Readonly<Record<string, string>>;
  busy?: string;
  class?: string;
  isUpload?: true | undefined;
  children?: ComponentChildren;
}

export function PostForm({ path, button, tone, hidden = {}, ...more }: PostFormProps) {
  const call = useCall();
  return (
    <form
      method="post"
      action={call.href(path)}
      class={more.class ?? 'form'}
      enctype={more.isUpload ? 'multipart/form-data' : undefined}
    >
      <input type="hidden" name="csrf" value={call.viewer.csrf} />
      {Object.entries(hidden).map(([name, value]) => (
        <input key={name} type="hidden" name={name} value={value} />
      ))}
      {more.children}
      <button type="submit" class={tone} data-busy={more.busy}>
        {button}
      </button>
    </form>
  );
}

const TONES: Readonly<Record<string, Tone>> = {
  settled: 'good',
  authorized: 'good',
  completed: 'good',
  delivered: 'good',
  received: 'good',
  confirmed: 'good',
  won: 'good',
  needs_response: 'note',
  underpaid: 'note',
  held: 'note',
  rejected: 'bad',
  failed: 'bad',
  lost: 'bad',
  returned: 'bad',
  exhausted: 'bad',
};

export function Status({ of }: { of: string }) {
  return <Badge tone={TONES[of] ?? 'plain'}>{statusName(of)}</Badge>;
}

export function statusName(status: string): string {
  const words = status.replaceAll('_', ' ');
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}
