# body.json has the body exactly as received,
# and SIGNATURE the header Service-Signature.
t=${SIGNATURE#t=}
t=${t%%,*}
v1=${SIGNATURE##*,v1=}
hmac=$(printf '%s.' "$t" | cat - body.json |
  openssl dgst -sha256 -hmac "${SIGNING_SECRET:?}" -r)
age=$(($(date +%s) - t))
if [ "${hmac%% *}" = "$v1" ] && [ "$age" -le 300 ] && [ "$age" -ge -300 ]; then
  echo genuine
else
  echo refused
fi
