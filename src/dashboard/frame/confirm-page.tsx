import { ProofFields } from './fields';
import { Note, PageHead, PostForm } from './parts';
import type { Call, Confirmation, Proof } from './route';

const OWN_FIELDS = new Set(['csrf', 'confirmed', 'password', 'code', 'passkey', 'new_password']);

interface ConfirmPageProps {
  call: Call;
  confirmation: Confirmation;
  proof: Proof | undefined;
  title: string;
  back: string;
  fault?: string | undefined;
}

/** Repeats the form's fields, to work without JavaScript. */
export function ConfirmPage({ call, confirmation, proof, title, back, fault }: ConfirmPageProps) {
  const { form, path } = call;
  const { question, button } = confirmation;
  const hiddenFields = [...form].filter(([name]) => !OWN_FIELDS.has(name));
  return (
    <>
      <PageHead title={title} />
      {fault !== undefined && <Note tone="bad">{fault}</Note>}
      <section class="panel narrow">
        <p>{typeof question === 'string' ? question : question(form)}</p>
        <PostForm call={call} path={path} button={button} hidden={{ confirmed: 'yes' }}>
          {hiddenFields.map(([name, value]) => (
            <input key={`${name}=${value}`} type="hidden" name={name} value={value} />
          ))}
          {proof && <ProofFields user={call.viewer.user} proof={proof} autofocus />}
        </PostForm>
        <a href={back}>Back without doing it</a>
      </section>
    </>
  );
}
