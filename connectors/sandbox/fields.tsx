import type { ComponentChildren } from 'preact';

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
