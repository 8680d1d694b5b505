(* Domains that are spawned and joined in waves, as a parallel loop does it. What they allocate is
   shared, promoted, and dies when its domain is gone. *)

let rec burn n acc = if n = 0 then acc else burn (n - 1) ((n, n) :: acc)

let () =
  let before = Gc.minor_words () in
  let words = ref 0. in
  let kept = ref [] in
  for _ = 1 to 8 do
    let wave =
      List.init 3 (fun i ->
          Domain.spawn (fun () ->
              (* From OCaml 5.4 on, a domain begins with the count of the one before it. *)
              let before = Gc.minor_words () in
              let l = burn ((i + 1) * 20_000) [] in
              (l, Gc.minor_words () -. before)))
    in
    List.iter
      (fun d ->
        let l, w = Domain.join d in
        kept := l :: !kept;
        words := !words +. w)
      wave;
    if List.length !kept > 9 then kept := []
  done;
  Gc.full_major ();
  Printf.eprintf "truth: words %.0f\n" (!words +. Gc.minor_words () -. before);
  Printf.printf "%d lists kept\n" (List.length !kept)
