import type { Context } from 'koa';
import type { ComponentChildren } from 'preact';
import getRawBody from 'raw-body';
import { renderPage } from '../../src/pages/layout';

const FORM_BYTES_MAX = 4_096;

type Response = Pick<Context, 'status' | 'type' | 'body'>;

export async function readForm(ctx: Pick<Context, 'is' | 'req'>): Promise<URLSearchParams> {
  if (ctx.is('application/x-www-form-urlencoded') === false) return new URLSearchParams();
  const body = await getRawBody(ctx.req, { limit: FORM_BYTES_MAX, encoding: 'utf8' });
  return new URLSearchParams(body);
}

export function isTooLarge(error: unknown): boolean {
  return error instanceof Error && 'type' in error && error.type === 'entity.too.large';
}

interface BankPage {
  title: string;
  stylesheet: string;
  children: ComponentChildren;
}

export function showPage(ctx: Response, status: number, page: BankPage): void {
  ctx.status = status;
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = renderPage({
    ...page,
    banner: 'Sandbox bank: no money moves',
    footer: 'A pretend bank for testing payments.',
  });
}

export interface Message {
  status: number;
  title: string;
  text: string;
}

/** @param back the session's return_url */
export function showMessage(
  ctx: Response,
  { status, title, text }: Message,
  { stylesheet, back }: { stylesheet: string; back?: string },
): void {
  const children = (
    <>
      <div class="stack">
        <h1>{title}</h1>
        <p class="muted">{text}</p>
      </div>
      {back !== undefined && (
        <a class="button" href={back}>
          Back to the shop
        </a>
      )}
    </>
  );
  showPage(ctx, status, { title: `${title} · Sandbox bank`, stylesheet, children });
}

export function Approve(props: { path: string; label: string; children: ComponentChildren }) {
  return (
    <form class="stack" method="post" action={`${props.path}/decision`}>
      {props.children}
      <button type="submit" name="decision" value="approve">
        {props.label}
      </button>
    </form>
  );
}

interface FieldProps {
  name: string;
  label: string;
  hint: string;
  fault: string | undefined;
  value?: string;
  inputMode: 'numeric' | 'decimal' | 'tel';
  autoComplete: 'tel' | 'one-time-code' | 'off';
}

export function Field({ name, label, hint, fault, value, ...input }: FieldProps) {
  return (
    <div class="field">
      <label for={name}>{label}</label>
      <input
        id={name}
        name={name}
        value={value}
        required
        maxLength={40}
        aria-describedby={fault === undefined ? 'hint' : 'fault hint'}
        aria-invalid={fault !== undefined}
        {...input}
      />
      <Fault text={fault} />
      <p id="hint" class="muted small">
        {hint}
      </p>
    </div>
  );
}

export function Fault({ text }: { text: string | undefined }) {
  return text === undefined ? null : (
    <p id="fault" class="fault small" role="alert">
      {text}
    </p>
  );
}
