import type { ComponentChildren, InputHTMLAttributes, JSX } from 'preact';
import { PASSWORD_LENGTH } from '../../encryption/password';
import { PasskeyButton } from './passkeys';
import type { Proof, Viewer } from './route';

type Attributes = Omit<InputHTMLAttributes<HTMLElement>, 'type' | 'role' | 'list' | 'ref'>;

/** Inputs, each written out, since each type has its own accessible role. */
const INPUTS = {
  text: (more) => <input type="text" {...more} />,
  // Browsers rewrite international domains in their own type.
  email: (more) => <input type="text" inputmode="email" autocapitalize="none" {...more} />,
  password: (more) => <input type="password" {...more} />,
  url: (more) => <input type="url" {...more} />,
  search: (more) => <input type="search" {...more} />,
  date: (more) => <input type="date" {...more} />,
  number: (more) => <input type="number" {...more} />,
  file: (more) => <input type="file" {...more} />,
  lines: ({ value, ...more }) => (
    <textarea rows={8} {...more}>
      {value}
    </textarea>
  ),
} satisfies Record<string, (more: Attributes) => JSX.Element>;

const CLASSES: Partial<Record<keyof typeof INPUTS, string>> = {
  search: 'field search',
  lines: 'field long',
};

interface FieldProps {
  label: string;
  name: string;
  id?: string;
  type?: keyof typeof INPUTS;
  value?: string;
  hint?: string;
  fault?: string | undefined;
  required?: boolean;
  autocomplete?: string;
  inputmode?: 'numeric' | 'decimal';
  minLength?: number;
  maxLength?: number;
  autofocus?: boolean;
  placeholder?: string;
  accept?: string;
}

export function Field({ label, name, type = 'text', hint, fault, ...more }: FieldProps) {
  const id = more.id ?? `field-${name}`;
  const described = [hint && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(' ');
  return (
    <div class={CLASSES[type] ?? 'field'}>
      <label for={id}>{label}</label>
      {INPUTS[type]({
        ...more,
        id,
        name,
        autocomplete: more.autocomplete ?? 'off',
        spellcheck: false,
        'aria-invalid': fault === undefined ? undefined : 'true',
        'aria-describedby': described === '' ? undefined : described,
      })}
      <Hint id={id} hint={hint} fault={fault} />
    </div>
  );
}

export function PasswordField({
  label = 'Password',
  autofocus = false,
}: Partial<Pick<FieldProps, 'label' | 'autofocus'>>) {
  const autocomplete = 'current-password';
  return <Field {...{ label, autofocus, autocomplete }} name="password" type="password" required />;
}

export function CodeField({
  autofocus = false,
  required = true,
}: Pick<FieldProps, 'autofocus' | 'required'>) {
  return (
    <Field
      label="Code"
      name="code"
      autocomplete="one-time-code"
      hint="From your app, or one of your recovery codes."
      maxLength={50}
      required={required}
      autofocus={autofocus}
    />
  );
}

interface ProofFieldsProps extends Partial<Pick<FieldProps, 'label' | 'autofocus'>> {
  user: Viewer['user'];
  proof: Proof;
}

export function ProofFields({ user, proof, ...passwordField }: ProofFieldsProps) {
  return (
    <>
      <PasswordField {...passwordField} />
      {proof === 'step_up' && user.hasSecondFactor && <CodeField required={!user.hasPasskeys} />}
      {proof === 'step_up' && user.hasPasskeys && <PasskeyButton label="Use a passkey" />}
    </>
  );
}

export function NewPasswordField({ hint = '', ...more }: Omit<FieldProps, 'type'>) {
  return (
    <Field
      {...more}
      type="password"
      autocomplete="new-password"
      hint={`At least ${PASSWORD_LENGTH.min} characters.${hint}`}
      minLength={PASSWORD_LENGTH.min}
      maxLength={PASSWORD_LENGTH.max}
      required
    />
  );
}

interface SelectProps {
  label: string;
  name: string;
  value?: string;
  options: readonly (readonly [value: string, text: string])[];
  hint?: string;
}

export function Select({ label, name, value, options, hint }: SelectProps) {
  const id = `field-${name}`;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} name={name} aria-describedby={hint === undefined ? undefined : `${id}-hint`}>
        {options.map(([each, text]) => (
          <option key={each} value={each} selected={each === value}>
            {text}
          </option>
        ))}
      </select>
      <Hint id={id} hint={hint} />
    </div>
  );
}

interface ChecksProps {
  legend: string;
  name: string;
  options: readonly (readonly [value: string, text: string])[];
  checked: readonly string[];
  hint?: string;
}

export function Checks({ legend, name, options, checked, hint }: ChecksProps) {
  return (
    <fieldset class="field wide">
      <legend>{legend}</legend>
      <Hint id={`field-${name}`} hint={hint} />
      <div class="checks">
        {options.map(([value, text]) => (
          <label key={value} class="check">
            <input type="checkbox" name={name} value={value} checked={checked.includes(value)} />
            <span>{text}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** Form by GET, so that its address can be bookmarked. */
export function Filters({ action, children }: { action: string; children: ComponentChildren }) {
  return (
    <form method="get" action={action} class="filters">
      {children}
      <button type="submit" class="plain">
        Apply
      </button>
    </form>
  );
}

function Hint({ id, hint, fault }: { id: string; hint?: string; fault?: string | undefined }) {
  return (
    <>
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {fault !== undefined && (
        <p class="fault" id={`${id}-fault`}>
          {fault}
        </p>
      )}
    </>
  );
}
