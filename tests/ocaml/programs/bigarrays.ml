(* Memory outside of the OCaml heap that the runtime knows of: the sampler sees it as a source of
   its own. Prints how many words of it there were. *)

let () =
  let words = ref 0 in
  let kept = ref [] in
  for i = 1 to 600 do
    let n = 100 * (1 + (i mod 50)) in
    let a = Bigarray.Array1.create Bigarray.float64 Bigarray.c_layout n in
    a.{0} <- float_of_int i;
    words := !words + n;
    if i mod 10 = 0 then kept := a :: !kept
  done;
  Gc.minor ();
  let sum = List.fold_left (fun s a -> s +. Bigarray.Array1.get a 0) 0. !kept in
  Printf.printf "%.0f\n" sum;
  Printf.eprintf "truth: external words %d\n" !words
