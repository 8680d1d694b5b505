(* Ordinary OCaml: maps of strings that are built and dropped. Blocks die young, are promoted, and
   die old. *)

module M = Map.Make (String)

let build seed n =
  let rec go m i = if i = n then m else go (M.add (string_of_int ((i * 7919) + seed)) i m) (i + 1) in
  go M.empty 0

let () =
  let kept = ref [] in
  for round = 1 to 12 do
    let m = build round 5_000 in
    if round mod 3 = 0 then kept := m :: !kept;
    if round = 10 then kept := []
  done;
  Printf.printf "%d maps kept\n" (List.length !kept)
